/** The durable functions that a worker runs for a wrapped server. */

import type { Log } from "../../core/author/context.ts";
import { type Implementation, implement } from "../../core/author/implement.ts";
import type { CallArgs } from "../call-job.ts";
import type { Snapshot, WrapOptions, Wrapped } from "../index.ts";
import { runCall } from "./call/run-call.ts";
import { registerServer } from "./registered-servers.ts";
import { readSnapshot, updated, writeUpdate } from "./snapshot-file.ts";
import { WrappedServer } from "./wrapped-server.ts";

/** The launcher sets this variable if the worker is to write snapshots. Its value is the command that accepts held-back changes. */
const FOLLOW = "WRAP_FOLLOW";

/**
 * Options of `runWrapped`.
 *
 * @example
 * const options: RunOptions = { snapshot: new URL("./acme.snapshot.ts", import.meta.url) };
 */
export interface RunOptions {
  /** The snapshot that the edge imports. The log says when the server's tools differ; with `wrap` the snapshot follows them. */
  snapshot?: URL;
  /** The log of a connection that is opened at once. Default: the first call opens the connection. */
  connect?: Log;
}

/** The durable functions of a wrapped server's jobs, and the server that they call. */
export function implemented(
  { options, jobs }: Wrapped,
  { snapshot, connect }: RunOptions,
): { functions: readonly Implementation[]; server: WrappedServer } {
  const server = new WrappedServer(options, process.env, true);
  registerServer({ options, snapshot });
  if (snapshot !== undefined) server.onTools = follower(snapshot, options);
  if (connect) server.connection("", connect).catch((error) => connect.warn(error.message));
  const run = (ctx: Parameters<typeof runCall>[1], args: CallArgs) => runCall(server, ctx, args);
  return { functions: [implement(jobs.own, run), implement(jobs.shared, run)], server };
}

/** Returns a function that updates the snapshot from the server's lists, one after another, and logs the changes. */
function follower(file: URL, options: WrapOptions): (now: Snapshot, log: Log) => void {
  const accept = process.env[FOLLOW];
  let last = "";
  let following = Promise.resolve();
  const follow = async (now: Snapshot, log: Log) => {
    const before = await readSnapshot(file);
    // A worker that is bundled into one file has no snapshot beside it.
    if (before === undefined) return;
    const update = updated(before, now, options);
    const isNew = accept === undefined ? last !== JSON.stringify(update) : await writeUpdate(file, update, now);
    last = JSON.stringify(update);
    const say = (what: string, lines: string[]) => {
      for (const line of lines) log.warn(`the tools of ${options.name} have changed, ${what}`, { reason: line });
    };
    if (accept !== undefined) say("and are listed so", update.taken);
    else if (isNew) say("which the edge does not list yet", update.taken);
    if (isNew) say(`held back until you type ${accept ?? "durable-mcp-edge sync --accept"}`, update.held);
  };
  return (now, log) => {
    following = following
      .then(() => follow(now, log))
      .catch((error: Error) => log.warn("the list of tools was not written", { reason: error.message }));
  };
}
