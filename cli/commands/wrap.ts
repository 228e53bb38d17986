/** `wrap`: runs the whole stack on this machine, in front of an existing MCP server. */
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import getPort from "get-port";
import type { Log } from "../../core/index.ts";
import { collectGarbage } from "../../worker/process/collect-garbage.ts";
import { endPrograms } from "../../wrap/worker/host/hosted-transport.ts";
import { updateOf } from "../../wrap/worker/snapshot-file.ts";
import { WrappedServer } from "../../wrap/worker/wrapped-server.ts";
import { optionIn, readArguments, usageOf } from "../arguments.ts";
import { start } from "../launcher/start.ts";
import { HOST } from "../process/ports.ts";
import { readProject, typed } from "../project.ts";
import { silentLog } from "../wrap/silent-log.ts";
import { changes, checkChosen, leftOut, policyTable } from "../wrap/table.ts";
import { hideArguments, OPTIONS, wrapArguments } from "../wrap/wrap-arguments.ts";
import { agreedIn, directoryOf, projectIn, writeProject } from "../wrap/wrap-directory.ts";
import { FILES } from "../wrap/wrap-files.ts";

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

export const usage = (command: string): string => {
  const start = typed(readProject(), "start");
  return usageOf(
    ["URL [options]", "[options] -- COMMAND ..."],
    `Runs Resonate, a worker and an edge on this machine until Ctrl-C, in front of the MCP server at URL or started by COMMAND.
Its tools become durable jobs. Its state is kept in a directory of its own below .resonate.

Also the options of ${start}: --port, --data, --memory and more.`,
    OPTIONS,
  )(command);
};

export async function run(args: string[]): Promise<void> {
  const given = readArguments(() => wrapArguments(args, process.env));
  hideArguments(given);
  const { options, rest, secrets } = given;
  Object.assign(process.env, secrets);
  const [memory, data] = [rest.includes("--memory"), optionIn(rest, "--data")];
  const own = directoryOf(options, given.isNamed);
  const state = data ?? own.data;
  const root = memory ? await mkdtemp(join(tmpdir(), "durable-mcp-edge-wrap-")) : resolve(projectIn(state));
  if (memory) process.once("exit", () => rmSync(root, { recursive: true, force: true }));
  process.env.WRAP_FOLDER = root;
  // Makes processes with many threads return memory sooner. The wrapped program does not get this variable.
  process.env.MALLOC_ARENA_MAX ??= "2";
  const server = new WrappedServer(options, process.env, true);
  // A program host outlives its user for a while, so a program that nobody will use must be ended.
  process.once("exit", endPrograms);
  const quit = () => process.exit(130);
  for (const signal of SIGNALS) process.once(signal, quit);
  console.log(`Asking ${options.name} for its tools ...`);
  let said = "";
  const info: Log["info"] = (_message, { says } = {}) => {
    said = String(says ?? said);
  };
  const now = await server.currentSnapshot({ ...silentLog, info }, (what) =>
    console.log(said === "" ? what : `${what}; it wrote: ${said}`),
  );
  const { name, version } = now.server;
  console.log(`${name} ${version}, revision ${now.revision}, ${now.tools.length} tools\n`);
  if (own.isTaken) {
    console.log(
      `${options.name} is the name of another server here: this one is ${own.name}. --name gives it another.\n`,
    );
  }
  const update = updateOf(await agreedIn(root, options), now, options);
  const { snapshot } = update;
  for (const line of policyTable(snapshot, options)) console.log(`  ${line}`);
  for (const line of leftOut(snapshot, options)) console.log(line);
  const sync = typed(readProject(), "sync", "--accept");
  const accept = data === undefined && !memory ? sync : `cd ${root} && ${sync}`;
  for (const line of changes(update, accept)) console.log(line);
  checkChosen(snapshot, options);
  console.log("");
  const served = { ...options, name: own.name };
  process.env.WRAP_FOLLOW = accept;
  // Only jobs have traces, so with tracing each call must be a job.
  if (!process.env.OTEL_EXPORTER_OTLP_ENDPOINT) {
    process.env.WRAP_CALLS = `http://${HOST}:${await getPort({ host: HOST })}`;
    process.env.WRAP_CALLS_TOKEN = randomBytes(32).toString("hex");
  }
  const project = { root, name: own.name, scripts: readProject().scripts, settings: { wrapped: FILES.options } };
  const launch = memory || data !== undefined ? rest : [...rest, "--data", state];
  for (const signal of SIGNALS) process.off(signal, quit);
  let isHandedOver = false;
  // Nothing is written before the state is locked, because another run may use it.
  await start("wrap", launch, project, async () => {
    isHandedOver = true;
    await writeProject(root, served, now, update);
    await server.handOver();
  });
  if (isHandedOver) collectGarbage();
  else await server.close();
}
