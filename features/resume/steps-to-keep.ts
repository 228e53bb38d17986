/** Which steps a new attempt at a job may take over from the previous one. */

import { type JournalEntry, type JournalRecord, nameIn } from "../../core/engine/index.ts";
import type { PromiseRecord } from "../../core/resonate/index.ts";

/** The path of an undo: see `ctx.onUndo`. */
const UNDO = /^undo\/[^/]+$/;

/** The name of a step that ends another job. */
const REQUEST = /^(?:end|cancel) (.*)$/s;

const UNDONE_REASON = "recorded work after a failure, which may have undone its steps: they are done again";

/**
 * The outcomes of the steps of an earlier attempt, by their paths, or why none is kept. None is kept if anything was recorded after
 * the first failure that reached the function, because the function may have undone the steps; or if the attempt went on after a
 * callback, because a new attempt waits for it at another address, which the kept steps would not pass on.
 *
 * @param stateOf reads how a job that the attempt awaited has ended, by the path of the command; undefined if there is no such job
 */
export async function stepsToKeep(
  records: readonly JournalRecord[],
  stateOf: (path: string) => Promise<PromiseRecord["state"] | undefined>,
): Promise<ReadonlyMap<string, JournalRecord> | string> {
  const commandsOfJob = new Set<string>();
  /** The batch of records that holds the first failure. It was written before the failure reached the function. */
  let failed: number | undefined;
  for (const { n, event } of records) {
    const batch = event.with ?? n;
    if (failed !== undefined && batch !== failed) return UNDONE_REASON;
    if (event.kind === "step" && UNDO.test(event.op)) return UNDONE_REASON;
    if (event.kind === "sleep" || event.kind === "ask") commandsOfJob.add(event.op);
    // An outcome of another job reaches the function before the record that lists it.
    for (const path of event.after ?? []) {
      const state = commandsOfJob.has(path) ? "resolved" : await stateOf(path);
      if (state === undefined)
        return `went on after "${path}", a callback of its own or a job that is gone: its steps are done again`;
      if (state !== "resolved") return UNDONE_REASON;
    }
    if (isFailure(event)) failed ??= batch;
  }
  const isRequest = requestsTo(startedIn(records));
  const steps = records.filter(({ event }) => event.kind === "step" && !event.error && !isRequest(event.op));
  return new Map(steps.map((each) => [each.event.op, each]));
}

/** The names of the jobs that the attempt started, or was about to. */
const startedIn = (records: readonly JournalRecord[]) =>
  records.flatMap(({ event, value }) => {
    if (event.kind === "begin") return event.of === "start" ? event.child : [];
    return event.kind === "start" && typeof value === "string" ? value : [];
  });

/** Whether a step ends one of these jobs. A new attempt starts them again. */
function requestsTo(jobs: readonly string[]): (path: string) => boolean {
  const names = new Set(jobs);
  return (path) => names.has(REQUEST.exec(nameIn(path))?.[1] ?? "");
}

const isFailure = (event: JournalEntry): boolean =>
  event.kind === "race"
    ? event.failed === true
    : event.kind === "cancelled" || (event.kind !== "retry" && "error" in event && event.error !== undefined);
