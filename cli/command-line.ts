/** The command line, `durable-mcp-edge COMMAND …`, for the project in the working directory. */
import { enableCompileCache } from "node:module";
import { WrongArguments } from "./arguments.ts";
import { COMPILE_CACHE, packageVersion } from "./package.ts";
import { print, printError } from "./terminal/print.ts";

interface Command {
  /** The text for `--help` and for wrong arguments. A command without it passes all arguments to its program. */
  usage?(name: string): string | Promise<string>;
  run(args: string[], name: string): Promise<void>;
}

const COMMANDS: Readonly<Record<string, readonly [summary: string, load: () => Promise<Command>]>> = {
  new: ["create a project, or add a tool to one", () => import("./commands/new.ts")],
  start: ["run the whole server on this machine", () => import("./launcher/start.ts")],
  dev: ["the same, and serve edits as they are saved", () => import("./launcher/start.ts")],
  wrap: ["put durability in front of an existing server", () => import("./commands/wrap.ts")],
  sync: ["update the tool lists of the wrapped servers", () => import("./commands/sync.ts")],
  worker: ["run the worker alone", () => import("./commands/start-worker.ts")],
  resonate: ["run the embedded Resonate server alone", () => import("./commands/start-resonate.ts")],
  proxy: ["serve a hosted server to a client that speaks only stdio", () => import("./commands/proxy.ts")],
  wait: ["wait until jobs have ended", () => import("./client/wait.ts")],
  events: ["print what happens to a caller's jobs", () => import("./client/events.ts")],
  doctor: ["check a deployment, or the stack on this machine", () => import("./doctor/doctor.ts")],
  keys: ["create the keys and tokens of a deployment", () => import("./commands/keys.ts")],
  token: ["create a static token for a caller", () => import("./commands/token.ts")],
  jobs: ["list what is blocked, failing or waiting for an answer", () => import("./operate/jobs.ts")],
  retry: ["retry a blocked job now", () => import("./operate/retry.ts")],
  histories: ["save what jobs have recorded, for tests of new code", () => import("./operate/histories.ts")],
  pause: ["stop running jobs of a kind", () => import("./operate/pause.ts")],
  resume: ["continue the jobs of a paused kind", () => import("./operate/pause.ts")],
  operate: ["see and control a deployment, as its page /operate does", () => import("./operate/operate.ts")],
  retention: ["remove old jobs from a standalone server's database", () => import("./operate/data/retention.ts")],
  forget: ["remove the data of one caller", () => import("./operate/data/forget.ts")],
  backup: ["write all jobs and results to a file or a bucket", () => import("./operate/data/backup.ts")],
  restore: ["restore a backup, or an earlier state", () => import("./operate/data/restore.ts")],
  move: ["move all jobs to a standalone Resonate server", () => import("./operate/data/move.ts")],
  deploy: ["deploy the edge to Cloudflare", () => import("./commands/deploy.ts")],
};

const USAGE = `Usage: durable-mcp-edge COMMAND [options]

${Object.entries(COMMANDS)
  .map(([name, [summary]]) => `  ${name.padEnd(9)} ${summary}`)
  .join("\n")}

\`durable-mcp-edge COMMAND --help\` lists the options of a command. A command serves the project in whose folder it is run:
functions/index.ts, edge/index.ts or the \`main\` of its wrangler.toml is the edge, and worker/main.ts or worker.ts runs the
worker.

  --version  print the version
  --help     show this text
`;

const [name = "", ...args] = process.argv.slice(2);
// The compile cache halves the start-up time of this process and of its children. `dev` does not use it: each edit would add
// a file that stays in the cache forever.
if (name !== "dev") {
  process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE;
  enableCompileCache(process.env.NODE_COMPILE_CACHE);
}
const isHelp = (args.includes("--") ? args.slice(0, args.indexOf("--")) : args).includes("--help");
const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
if (command) {
  const { usage, run } = await command[1]();
  if (usage && isHelp) {
    print(await usage(name));
  } else {
    await run(args, name).catch(async (error: NodeJS.ErrnoException) => {
      const isWrong = error instanceof WrongArguments || error.code?.startsWith("ERR_PARSE_ARGS");
      printError(usage && isWrong ? `${error.message}\n\n${await usage(name)}` : error.message);
      process.exit(isWrong ? 2 : 1);
    });
  }
} else if (name === "--version") {
  print(packageVersion());
} else if (name === "--help") {
  print(USAGE);
} else {
  printError(`${name === "" ? "Which command?" : `There is no command "${name}".`}\n\n${USAGE}`);
  process.exitCode = 2;
}
