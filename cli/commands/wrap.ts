/** `wrap`: runs the whole stack on this machine, in front of an existing MCP server. */
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { WrappedServer } from "../../wrap/worker/wrapped-server.ts";
import { readArguments } from "../arguments.ts";
import { DATA } from "../launcher/data-directory.ts";
import { start } from "../launcher/start.ts";
import { type Project, readProject, typed } from "../project.ts";
import { silentLog } from "../wrap/silent-log.ts";
import { checkChosen, leftOut, policyTable } from "../wrap/table.ts";
import { hideArguments, OPTIONS, wrapArguments } from "../wrap/wrap-arguments.ts";
import { writeProject } from "../wrap/wrap-project.ts";

const usage = () => `Usage: ${typed(readProject(), "wrap", "URL [options]")}
       ${typed(readProject(), "wrap", "[options] -- COMMAND ...")}

Runs Resonate, a worker and an edge on this machine until Ctrl-C, in front of the MCP server at URL or started by COMMAND.
Its tools become durable jobs.

${OPTIONS.map(([option, text]) => `  ${option.padEnd(23)} ${text}`).join("\n")}
  --help                  show this text

Also the options of ${typed(readProject(), "start")}: --port, --data, --memory and more.
`;

export async function run(args: string[]): Promise<void> {
  const given = readArguments(() => wrapArguments(args, process.env), usage());
  if (!given) return;
  hideArguments(given);
  const { options, rest, secrets } = given;
  Object.assign(process.env, secrets);
  const server = new WrappedServer(options, process.env);
  console.log(`Asking ${options.name} for its tools ...`);
  const snapshot = await server.look(silentLog);
  await server.close();
  const { name, version } = snapshot.server;
  console.log(`${name} ${version}, revision ${snapshot.revision}, ${snapshot.tools.length} tools\n`);
  for (const line of policyTable(snapshot, options)) console.log(`  ${line}`);
  for (const line of leftOut(snapshot, options)) console.log(line);
  checkChosen(snapshot, options);
  console.log("");
  const root = resolve(".build", `wrap-${options.name}`);
  mkdirSync(root, { recursive: true });
  await writeProject(root, options, snapshot);
  Object.assign(process.env, { WRAP_FOLLOW: "1", WRAP_FOLDER: root });
  await start("wrap", withDataIn(resolve("."), rest), projectAt(root));
}

/** Makes the data directory relative to the folder in which the command was typed. */
function withDataIn(home: string, args: readonly string[]): string[] {
  const at = args.findIndex((arg) => arg === "--data" || arg.startsWith("--data="));
  if (at < 0) return args.includes("--memory") ? [...args] : [...args, "--data", join(home, DATA)];
  const all = args.flatMap((arg) => (arg.startsWith("--data=") ? ["--data", arg.slice("--data=".length)] : [arg]));
  return all.map((arg, i) => (all[i - 1] === "--data" ? resolve(home, arg) : arg));
}

/** Enters the project at `root`; messages still name commands as the user types them in the original folder. */
function projectAt(root: string): Project {
  const { scripts } = readProject();
  process.chdir(root);
  return { ...readProject(root), scripts };
}
