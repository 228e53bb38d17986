/**
 * An addition to the protocol: with `records`, a worker that acquires a task asks for the job's journal entries from that
 * number on, and gets them in the answer. A worker that does not remember a job would otherwise request each one separately.
 */
import type { TaskAcquireReq } from "@resonatehq/sdk";
import { maxUnderWay } from "../../core/engine/index.ts";
import { isChildOf, journalEntryId, type PromiseRecord } from "../../core/resonate/index.ts";
import type { Outcome, State } from "./records.ts";
import { carryOut } from "./state-machine.ts";

/** The largest answer. The worker reads the journal of a larger job by itself. */
const MAX_RECORDS = 100;
const MAX_RECORD_CHARACTERS = 200_000;

type Acquire = TaskAcquireReq & { data: { records?: number } };

export function acquireWithRecords(state: State, now: number, request: Acquire): Outcome {
  const { id, records: firstNumber } = request.data;
  const awaitedChildren = [...(state.task(id)?.resumes ?? [])].filter((promiseId) => isChildOf(id, promiseId));
  const { response, changes } = carryOut(state, now, request);
  if (firstNumber === undefined || response.head.status !== 200) return { response, changes };
  const records = new Map<string, PromiseRecord>();
  let characters = 0;
  /** Adds a record to the answer; false if there is none. */
  const addRecord = (recordId: string): boolean => {
    const outcome = carryOut(state, now, { kind: "promise.get", head: request.head, data: { id: recordId } });
    changes.push(...outcome.changes);
    if (outcome.response.head.status !== 200) return false;
    const { promise } = outcome.response.data as { promise: PromiseRecord };
    characters += (promise.param.data?.length ?? 0) + (promise.value.data?.length ?? 0);
    records.set(recordId, promise);
    return true;
  };
  for (const childId of awaitedChildren.slice(0, MAX_RECORDS)) addRecord(childId);
  // A worker's writes may arrive out of order, so up to this many records may be missing before one that exists.
  for (let n = firstNumber, missing = 0; firstNumber > 0 && missing < maxUnderWay(n - missing - 1); n++) {
    missing = addRecord(journalEntryId(id, n)) ? 0 : missing + 1;
    if (characters > MAX_RECORD_CHARACTERS || records.size > MAX_RECORDS) return { response, changes };
  }
  const { preload, ...data } = response.data as { preload: PromiseRecord[] };
  const withRecords = { ...data, preload: [...preload, ...records.values()], records: firstNumber };
  return { response: { ...response, data: withRecords }, changes };
}
