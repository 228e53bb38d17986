/** The command line, `durable-mcp-edge COMMAND …`, for the project in the working directory. */
import { enableCompileCache } from "node:module";
import { COMPILE_CACHE, packageVersion } from "./package.ts";

interface Command {
  summary: string;
  /** Loads the command on demand. */
  run(args: string[]): Promise<void>;
}

const COMMANDS: Readonly<Record<string, Command>> = {
  new: {
    summary: "make a project, or add a tool to one",
    run: async (args) => (await import("./commands/new.ts")).run(args),
  },
  start: {
    summary: "run the whole server on this machine",
    run: async (args) => (await import("./launcher/start.ts")).start("start", args),
  },
  dev: {
    summary: "the same, and serve edits as they are saved",
    run: async (args) => (await import("./launcher/start.ts")).start("dev", args),
  },
  wrap: {
    summary: "put durability in front of an existing server",
    run: async (args) => (await import("./commands/wrap.ts")).run(args),
  },
  sync: {
    summary: "update the tool lists of the wrapped servers",
    run: async (args) => (await import("./commands/sync.ts")).run(args),
  },
  worker: {
    summary: "run the worker alone",
    run: async (args) => (await import("./commands/start-worker.ts")).run(args),
  },
  resonate: {
    summary: "run the embedded Resonate server alone",
    run: async (args) => (await import("./commands/start-resonate.ts")).run(args),
  },
  proxy: {
    summary: "serve a hosted server to a client that speaks only stdio",
    run: async (args) => (await import("./commands/proxy.ts")).run(args),
  },
  wait: {
    summary: "wait until jobs have ended",
    run: async (args) => (await import("./client/wait.ts")).run(args),
  },
  events: {
    summary: "print what happens to a caller's jobs",
    run: async (args) => (await import("./client/events.ts")).run(args),
  },
  doctor: {
    summary: "check a deployment, or the stack on this machine",
    run: async (args) => (await import("./doctor/doctor.ts")).run(args),
  },
  keys: {
    summary: "make the keys and tokens of a deployment",
    run: async (args) => (await import("./commands/keys.ts")).run(args),
  },
  token: {
    summary: "make a static token for a caller",
    run: async (args) => (await import("./commands/token.ts")).run(args),
  },
  jobs: {
    summary: "list what is blocked, failing or waiting for an answer",
    run: async (args) => (await import("./operate/jobs.ts")).run(args),
  },
  retry: {
    summary: "retry a blocked job now",
    run: async (args) => (await import("./operate/retry.ts")).run(args),
  },
  histories: {
    summary: "save what jobs have recorded, for tests of new code",
    run: async (args) => (await import("./operate/histories.ts")).run(args),
  },
  pause: {
    summary: "stop running jobs of a kind",
    run: async (args) => (await import("./operate/pause.ts")).run("pause", args),
  },
  resume: {
    summary: "continue the jobs of a paused kind",
    run: async (args) => (await import("./operate/pause.ts")).run("resume", args),
  },
  operate: {
    summary: "see and steer a deployment, as its page /operate does",
    run: async (args) => (await import("./operate/operate.ts")).run(args),
  },
  retention: {
    summary: "remove old jobs from a real Resonate server's database",
    run: async (args) => (await import("./operate/retention.ts")).run(args),
  },
  forget: {
    summary: "remove the data of one caller",
    run: async (args) => (await import("./operate/forget.ts")).run(args),
  },
  backup: {
    summary: "write all jobs and results to a file or a bucket",
    run: async (args) => (await import("./operate/backup.ts")).run(args),
  },
  restore: {
    summary: "restore a backup, or an earlier state",
    run: async (args) => (await import("./operate/restore.ts")).run(args),
  },
  move: {
    summary: "move all jobs to a real Resonate server",
    run: async (args) => (await import("./operate/move.ts")).run(args),
  },
  deploy: {
    summary: "deploy the edge to Cloudflare",
    run: async (args) => (await import("./commands/deploy.ts")).run(args),
  },
};

const USAGE = `Usage: durable-mcp-edge COMMAND [options]

${Object.entries(COMMANDS)
  .map(([name, { summary }]) => `  ${name.padEnd(9)} ${summary}`)
  .join("\n")}

\`durable-mcp-edge COMMAND --help\` lists the options of a command. A command serves the project in whose folder it is run:
its wrangler.toml names the edge, and worker/main.ts or worker.ts runs the worker.

  --version  print the version
  --help     show this text
`;

const [name = "", ...args] = process.argv.slice(2);
// The compile cache halves the start of this process and of its children. `dev` does without: each edit makes a new file,
// which would stay in the cache forever.
if (name !== "dev") {
  process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE;
  enableCompileCache(process.env.NODE_COMPILE_CACHE);
}
const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
if (command) {
  await command.run(args).catch((error: Error) => {
    console.error(error.message);
    process.exit(1);
  });
} else if (name === "--version") {
  console.log(packageVersion());
} else if (name === "--help") {
  console.log(USAGE);
} else {
  console.error(`${name === "" ? "Which command?" : `There is no command "${name}".`}\n\n${USAGE}`);
  process.exitCode = 2;
}
