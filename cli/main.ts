#!/usr/bin/env node
/** The command line, `durable-mcp-edge COMMAND …`: it serves the project whose folder it is run in. */
import { enableCompileCache } from "node:module";
import { COMPILE_CACHE, packageVersion } from "./package.ts";

interface Command {
  summary: string;
  /** Loaded only when it is wanted. */
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
    summary: "put durability in front of a server that exists",
    run: async (args) => (await import("./commands/wrap.ts")).run(args),
  },
  sync: {
    summary: "write down the tools of the servers that the project wraps",
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
    summary: "look at a blocked job again now",
    run: async (args) => (await import("./operate/retry.ts")).run(args),
  },
  pause: {
    summary: "have workers run no jobs of a kind",
    run: async (args) => (await import("./operate/pause.ts")).run("pause", args),
  },
  resume: {
    summary: "let jobs of a paused kind go on",
    run: async (args) => (await import("./operate/pause.ts")).run("resume", args),
  },
  quiet: {
    summary: "halt sleeps of earlier versions, which are offered to nobody",
    run: async (args) => (await import("./operate/quiet.ts")).run(args),
  },
  observe: {
    summary: "let Resonate's own pages look at the server",
    run: async (args) => (await import("./operate/observe.ts")).run(args),
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
    summary: "take up a backup, or an earlier state",
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
// Code that was compiled at an earlier start is not compiled again, here and in the processes that this one starts: they
// take half as long to start. What `dev` runs is another file after each edit, and would be kept for good.
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
