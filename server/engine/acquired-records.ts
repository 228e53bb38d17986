/**
 * An addition to the protocol: with `records`, a worker that acquires a task asks for the job's journal entries from that
 * number on, and gets them in the answer. A worker that does not remember a job would otherwise request each one separately.
 */
import type { TaskAcquireReq } from "@resonatehq/sdk";
import { maxUnderWay } from "../../core/engine/journal.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import { isChildOf, journalEntryId } from "../../core/resonate/ids.ts";
import type { Outcome, State } from "./records.ts";
import { carryOut } from "./state-machine.ts";

/** The largest answer, in records and in characters. The worker reads the journal of a larger job by itself. */
const MOST = { records: 100, characters: 200_000 };

type Acquire = TaskAcquireReq & { data: { records?: number } };

export function acquireWithRecords(state: State, now: number, request: Acquire): Outcome {
  const { id, records: from } = request.data;
  const resumedBy = [...(state.task(id)?.resumes ?? [])].filter((each) => isChildOf(id, each));
  const { response, changes } = carryOut(state, now, request);
  if (from === undefined || response.head.status !== 200) return { response, changes };
  const found = new Map<string, PromiseRecord>();
  let room = MOST.characters;
  const look = (each: string): boolean => {
    const read = carryOut(state, now, { kind: "promise.get", head: request.head, data: { id: each } });
    changes.push(...read.changes);
    if (read.response.head.status !== 200) return false;
    const { promise } = read.response.data as { promise: PromiseRecord };
    room -= (promise.param.data?.length ?? 0) + (promise.value.data?.length ?? 0);
    found.set(each, promise);
    return true;
  };
  for (const each of resumedBy.slice(0, MOST.records)) look(each);
  // A worker's writes may arrive out of order, so up to this many records may be missing before one that exists.
  for (let n = from, missing = 0; from > 0 && missing < maxUnderWay(n - missing - 1); n++) {
    missing = look(journalEntryId(id, n)) ? 0 : missing + 1;
    if (room < 0 || found.size > MOST.records) return { response, changes };
  }
  const { preload, ...data } = response.data as { preload: PromiseRecord[] };
  const all = { ...data, preload: [...preload, ...found.values()], records: from };
  return { response: { ...response, data: all }, changes };
}
