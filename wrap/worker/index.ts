/** `durable-mcp-edge/wrap/worker`: makes the calls to a wrapped server; only workers import it. */
import { type Implementation, implement } from "../../core/author/implement.ts";
import type { CallArgs } from "../call-job.ts";
import type { Wrapped } from "../index.ts";
import { makeKnown } from "./known.ts";
import { runCall } from "./run-call.ts";
import { writeSnapshot } from "./take.ts";
import { WrappedServer } from "./wrapped-server.ts";

/** The variable that makes a worker write down that a list of tools has changed; the launcher sets it. */
const FOLLOW = "WRAP_FOLLOW";

/**
 * What {@link runWrapped} is told besides.
 *
 * @example
 * const options: RunOptions = { snapshot: new URL("./acme.snapshot.ts", import.meta.url) };
 */
export interface RunOptions {
  /** The snapshot that the edge imports. On a developer's machine it is written anew when the server's tools have changed. */
  snapshot?: URL;
}

/**
 * The code of a wrapped server's jobs. The worker connects to the server when there is a call for it, and keeps the
 * connection; a program is started again when it has ended.
 *
 * @example
 * const runs: readonly Implementation[] = runWrapped(wrapServer({ name: "acme", command: "python", args: ["server.py"] }));
 */
export function runWrapped({ options, jobs }: Wrapped, { snapshot }: RunOptions = {}): readonly Implementation[] {
  const server = new WrappedServer(options, process.env, true);
  makeKnown({ options, snapshot });
  if (snapshot !== undefined && process.env[FOLLOW]) server.onTools = (seen) => void writeSnapshot(snapshot, seen);
  const run = (ctx: Parameters<typeof runCall>[1], args: CallArgs) => runCall(server, ctx, args);
  return [implement(jobs.own, run), implement(jobs.shared, run)];
}
