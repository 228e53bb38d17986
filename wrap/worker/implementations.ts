/** The durable functions that a worker runs for a wrapped server. */

import { type Implementation, implement, type Log } from "../../core/author/index.ts";
import type { CallArgs } from "../call-job.ts";
import type { Snapshot, WrapDefinition, WrapOptions } from "../index.ts";
import { runCall } from "./call/run-call.ts";
import { registerServer } from "./registered-servers.ts";
import { readSnapshot, updateOf, writeUpdate } from "./snapshot-file.ts";
import { WrappedServer } from "./wrapped-server.ts";

/** The launcher sets this variable if the worker is to write snapshots. Its value is the command that accepts changes. */
const ACCEPT_COMMAND_VARIABLE = "WRAP_FOLLOW";

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
export function implementationsOf(
  { options, jobs }: WrapDefinition,
  { snapshot, connect }: RunOptions,
): { functions: readonly Implementation[]; server: WrappedServer } {
  const server = new WrappedServer(options, process.env, true);
  registerServer({ options, snapshot });
  if (snapshot !== undefined) server.onTools = snapshotUpdater(snapshot, options);
  if (connect) server.connection("", connect).catch((error) => connect.warn(error.message));
  const run = (ctx: Parameters<typeof runCall>[1], args: CallArgs) => runCall(server, ctx, args);
  return { functions: [implement(jobs.own, run), implement(jobs.shared, run)], server };
}

/** Returns a function that updates the snapshot from the server's lists, one after another, and logs the changes. */
function snapshotUpdater(file: URL, options: WrapOptions): (now: Snapshot, log: Log) => void {
  const acceptCommand = process.env[ACCEPT_COMMAND_VARIABLE];
  let lastUpdate = "";
  let updating = Promise.resolve();
  const update = async (now: Snapshot, log: Log) => {
    const before = await readSnapshot(file);
    // A worker that is bundled into one file has no snapshot beside it.
    if (before === undefined) return;
    const update = updateOf(before, now, options);
    const json = JSON.stringify(update);
    const isNew = acceptCommand === undefined ? json !== lastUpdate : await writeUpdate(file, update, now);
    lastUpdate = json;
    const report = (consequence: string, lines: string[]) => {
      for (const line of lines) log.warn(`the tools of ${options.name} have changed, ${consequence}`, { reason: line });
    };
    if (acceptCommand !== undefined) report("and are listed so", update.changes);
    else if (isNew) report("which the edge does not list yet", update.changes);
    const command = acceptCommand ?? "durable-mcp-edge sync --accept";
    if (isNew) report(`held back until you type ${command}`, update.unapprovedChanges);
  };
  return (now, log) => {
    updating = updating
      .then(() => update(now, log))
      .catch((error: Error) => log.warn("the list of tools was not written", { reason: error.message }));
  };
}
