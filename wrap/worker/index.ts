/** `durable-mcp-edge/wrap/worker`: makes the calls to a wrapped server; only workers import it. */
import { type Implementation, implement } from "../../core/author/implement.ts";
import type { Log } from "../../core/definitions/context.ts";
import type { CallArgs } from "../call-job.ts";
import type { Wrapped } from "../index.ts";
import { runCall } from "./call/run-call.ts";
import { registerServer } from "./registered-servers.ts";
import { writeSnapshot } from "./snapshot-file.ts";
import { WrappedServer } from "./wrapped-server.ts";

/** The launcher sets this variable to have changed snapshots written. */
const FOLLOW = "WRAP_FOLLOW";

/**
 * Options of {@link runWrapped}.
 *
 * @example
 * const options: RunOptions = { snapshot: new URL("./acme.snapshot.ts", import.meta.url) };
 */
export interface RunOptions {
  /** The snapshot that the edge imports. On a developer's machine it is rewritten when the server's tools have changed. */
  snapshot?: URL;
  /** Connects to the server at once, and logs there. Default: connects at the first call. */
  connect?: Log;
}

/**
 * The durable functions of a wrapped server's jobs. The worker connects to the server for the first call and keeps the
 * connection; a program that has ended is started again.
 *
 * @example
 * const runs: readonly Implementation[] = runWrapped(wrapServer({ name: "acme", command: "python", args: ["server.py"] }));
 */
export function runWrapped(
  { options, jobs }: Wrapped,
  { snapshot, connect }: RunOptions = {},
): readonly Implementation[] {
  const server = new WrappedServer(options, process.env, true);
  registerServer({ options, snapshot });
  if (snapshot !== undefined && process.env[FOLLOW]) server.onTools = (seen) => void writeSnapshot(snapshot, seen);
  if (connect) server.connection("", connect).catch((error) => connect.warn(error.message));
  const run = (ctx: Parameters<typeof runCall>[1], args: CallArgs) => runCall(server, ctx, args);
  return [implement(jobs.own, run), implement(jobs.shared, run)];
}
