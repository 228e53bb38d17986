/** `wrap`: runs the whole stack on this machine, in front of an existing MCP server. */
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import getPort from "get-port";
import type { Log } from "../../core/index.ts";
import { collectGarbage } from "../../worker/process/collect-garbage.ts";
import type { Snapshot, WrapOptions } from "../../wrap/index.ts";
import { endPrograms } from "../../wrap/worker/host/hosted-transport.ts";
import { type Update, updateOf } from "../../wrap/worker/snapshot-file.ts";
import { WrappedServer } from "../../wrap/worker/wrapped-server.ts";
import { optionIn, readArguments, usageOf } from "../arguments.ts";
import { start } from "../launcher/start.ts";
import { HOST } from "../process/ports.ts";
import { commandLine, readProject } from "../project.ts";
import { print } from "../terminal/print.ts";
import { silentLog } from "../wrap/silent-log.ts";
import { changes, checkChosen, omissions, policyTable } from "../wrap/table.ts";
import { hideArguments, OPTIONS, wrapArguments } from "../wrap/wrap-arguments.ts";
import { acceptedSnapshot, directoryOf, projectIn, writeProject } from "../wrap/wrap-directory.ts";
import { FILES } from "../wrap/wrap-files.ts";

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

export const usage = (command: string): string => {
  const start = commandLine(readProject(), "start");
  return usageOf(
    ["URL [options]", "[options] -- COMMAND ..."],
    `Runs Resonate, a worker and an edge on this machine until Ctrl-C, in front of the MCP server at URL or started by COMMAND.
Its tools become durable jobs. Its state is kept in a directory of its own below .resonate.

Also the options of ${start}: --port, --data, --memory and more.`,
    OPTIONS,
  )(command);
};

export async function run(args: string[]): Promise<void> {
  const request = readArguments(() => wrapArguments(args, process.env));
  hideArguments(request);
  const { options, rest, secrets } = request;
  Object.assign(process.env, secrets);
  const [isInMemory, data] = [rest.includes("--memory"), optionIn(rest, "--data")];
  const directory = directoryOf(options, request.isNamed);
  const state = data ?? directory.data;
  const root = isInMemory ? await mkdtemp(join(tmpdir(), "durable-mcp-edge-wrap-")) : resolve(projectIn(state));
  if (isInMemory) process.once("exit", () => rmSync(root, { recursive: true, force: true }));
  process.env.WRAP_FOLDER = root;
  // Makes processes with many threads return memory sooner. The wrapped program does not get this variable.
  process.env.MALLOC_ARENA_MAX ??= "2";
  const server = new WrappedServer(options, process.env, true);
  // A program host outlives its user for a while, so a program that nobody will use must be ended.
  process.once("exit", endPrograms);
  const quit = () => process.exit(130);
  for (const signal of SIGNALS) process.once(signal, quit);
  const current = await fetchSnapshot(server, options.name);
  if (directory.isTaken) {
    print(
      `${options.name} is the name of another server here: this one is ${directory.name}. --name gives it another.\n`,
    );
  }
  const update = updateOf(await acceptedSnapshot(root, options), current, options);
  const sync = commandLine(readProject(), "sync", "--accept");
  const acceptCommand = data === undefined && !isInMemory ? sync : `cd ${root} && ${sync}`;
  printTools(update, options, acceptCommand);
  process.env.WRAP_FOLLOW = acceptCommand;
  await chooseCallsAddress();
  const project = {
    root,
    name: directory.name,
    scripts: readProject().scripts,
    settings: { wrapped: FILES.options },
  };
  const launcherArgs = isInMemory || data !== undefined ? rest : [...rest, "--data", state];
  for (const signal of SIGNALS) process.off(signal, quit);
  let isHandedOver = false;
  // Nothing is written before the state is locked, because another run may use it.
  await start("wrap", launcherArgs, project, async () => {
    isHandedOver = true;
    await writeProject(root, { ...options, name: directory.name }, current, update);
    await server.handOver();
  });
  if (isHandedOver) collectGarbage();
  else await server.close();
}

/** Asks the server for its tools, and prints what it reports while it starts. */
async function fetchSnapshot(server: WrappedServer, name: string): Promise<Snapshot> {
  print(`Asking ${name} for its tools ...`);
  let output = "";
  const info: Log["info"] = (_message, { says } = {}) => {
    output = String(says ?? output);
  };
  const snapshot = await server.currentSnapshot({ ...silentLog, info }, (what) =>
    print(output === "" ? what : `${what}; it wrote: ${output}`),
  );
  const { revision, tools } = snapshot;
  print(`${snapshot.server.name} ${snapshot.server.version}, revision ${revision}, ${tools.length} tools\n`);
  return snapshot;
}

/** @throws {Error} if all tools are left out */
function printTools(update: Update, options: WrapOptions, acceptCommand: string): void {
  const { snapshot } = update;
  for (const line of policyTable(snapshot, options)) print(`  ${line}`);
  for (const line of omissions(snapshot, options)) print(line);
  for (const line of changes(update, acceptCommand)) print(line);
  checkChosen(snapshot, options);
  print("");
}

/** Chooses where the worker accepts calls that may end before they become jobs. */
async function chooseCallsAddress(): Promise<void> {
  // Only jobs have traces, so with tracing each call must be a job.
  if (process.env.OTEL_EXPORTER_OTLP_ENDPOINT) return;
  process.env.WRAP_CALLS = `http://${HOST}:${await getPort({ host: HOST })}`;
  process.env.WRAP_CALLS_TOKEN = randomBytes(32).toString("hex");
}
