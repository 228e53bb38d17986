/** Which steps a new attempt at a job may take over from the previous one. */
import type { PromiseRecord } from "../store/connection/protocol.ts";
import type { JournalEntry, JournalRecord } from "./journal.ts";

/**
 * The outcomes of the steps of an earlier attempt, by their paths; undefined if anything was recorded after the first
 * failure that reached the function, because the function may have undone the steps.
 *
 * @param stateOf reads how a job that the attempt awaited has ended, by the path of the command
 */
export async function stepsToKeep(
  records: readonly JournalRecord[],
  stateOf: (path: string) => Promise<PromiseRecord["state"] | undefined>,
): Promise<ReadonlyMap<string, JournalRecord> | undefined> {
  const own = new Set<string>();
  /** The batch of records that holds the first failure. It was written before the failure reached the function. */
  let failed: number | undefined;
  for (const { n, event } of records) {
    const batch = event.with ?? n;
    if (failed !== undefined && batch !== failed) return undefined;
    if (event.kind === "sleep" || event.kind === "ask") own.add(event.op);
    // An outcome of another job reaches the function before the record that lists it.
    for (const path of event.after ?? []) if (!own.has(path) && (await stateOf(path)) !== "resolved") return undefined;
    if (isFailure(event)) failed ??= batch;
  }
  const steps = records.filter(({ event }) => event.kind === "step" && !event.error);
  return new Map(steps.map((each) => [each.event.op, each]));
}

const isFailure = (event: JournalEntry): boolean =>
  event.kind === "race"
    ? event.failed === true
    : event.kind === "cancelled" || (event.kind !== "retry" && "error" in event && event.error !== undefined);
