/** `durable-mcp-edge/wrap/worker`: makes the calls to a wrapped server; only workers import it. */
import { type Implementation, implement } from "../../core/durable/implement.ts";
import type { Wrapped } from "../index.ts";
import type { CallArgs } from "../job.ts";
import type { WrapOptions } from "../options.ts";
import { runCall } from "./run.ts";
import { WrappedServer } from "./server.ts";
import { writeSnapshot } from "./take.ts";

export { WrappedServer } from "./server.ts";
export { readSnapshot, writeSnapshot } from "./take.ts";

/** A server that is wrapped in this process, and where its snapshot is. */
export interface Known {
  options: WrapOptions;
  snapshot: URL | undefined;
}

/** Every copy of this module has them in common. */
const KNOWN = Symbol.for("durable-mcp-edge.wrapped");
type Holder = { [KNOWN]?: Known[] };

/** The servers that modules which were loaded so far wrap. */
export const known = (): readonly Known[] => (globalThis as Holder)[KNOWN] ?? [];

/** The variable that makes a worker write down that a list of tools has changed; the launcher sets it. */
export const FOLLOW = "WRAP_FOLLOW";

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
 * const runs: readonly Implementation[] = runWrapped(acme);
 */
export function runWrapped({ options, jobs }: Wrapped, { snapshot }: RunOptions = {}): readonly Implementation[] {
  const server = new WrappedServer(options, process.env);
  (globalThis as Holder)[KNOWN] = [...known(), { options, snapshot }];
  if (snapshot !== undefined && process.env[FOLLOW]) server.onTools = (seen) => void writeSnapshot(snapshot, seen);
  const run = (ctx: Parameters<typeof runCall>[1], args: CallArgs) => runCall(server, ctx, args);
  return [implement(jobs.own, run), implement(jobs.shared, run)];
}
