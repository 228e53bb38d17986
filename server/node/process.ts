/**
 * The embedded Resonate server as a process, for one machine.
 *
 *   node server/node/process.ts [--port 8001] [--data .resonate | --memory]
 *
 * Logs JSON lines to standard output (`LOG_LEVEL`, default info). The line `ready` has the server's URL and state file.
 */
import { flushCompileCache } from "node:module";
import { parseArgs } from "node:util";
import pino from "pino";
import { retentionOf } from "../../core/jobs/index.ts";
import { StartError } from "./database.ts";
import { startResonate } from "./http.ts";

const USAGE = `Runs the embedded Resonate server, for one machine.

  --port PORT  where it listens on 127.0.0.1 (default 8001)
  --data DIR   where it keeps its state (default .resonate)
  --memory     keep the state in memory only
  --help       show this text

Jobs that finished longer than RETENTION_DAYS ago (default 400; "forever") are removed.
`;

try {
  const log = pino({
    level: process.env.LOG_LEVEL || "info",
    base: { process: "resonate" },
    formatters: { level: (level) => ({ level }) },
  });
  const { values } = parseArgs({
    options: {
      port: { type: "string", default: "8001" },
      data: { type: "string", default: ".resonate" },
      memory: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(USAGE);
    process.exit();
  }
  const server = await startResonate({
    port: portNumber(values.port),
    data: values.memory ? undefined : values.data,
    retention: retentionOf(process.env.RETENTION_DAYS),
    log,
  });
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, async () => {
      await server.close();
      process.exit(0);
    });
  }
  log.info({ url: server.url, file: server.file }, "ready");
  // Node saves its compiled code only when a process exits, and this one may be killed.
  flushCompileCache();
} catch (error) {
  console.error(`resonate: ${explain(error)}`);
  process.exit(1);
}

function portNumber(value: string): number {
  const port = Number(value);
  if (!/^\d+$/.test(value) || port > 65_535)
    throw new StartError(`--port must be a number from 0 to 65535, not ${value}`);
  return port;
}

function explain(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { code, port } = error as NodeJS.ErrnoException & { port?: number };
  if (code === "EADDRINUSE") return `Port ${port} is taken. Stop what uses it, or choose another with --port.`;
  if (code === "EACCES" && port !== undefined)
    return `Port ${port} may not be used by this user. Choose another with --port.`;
  // An error that the user can act on needs no stack; any other error is a fault of this program.
  return error instanceof StartError || error instanceof RangeError || code?.startsWith("ERR_PARSE_ARGS")
    ? error.message
    : (error.stack ?? error.message);
}
