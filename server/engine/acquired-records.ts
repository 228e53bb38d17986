/**
 * What a job has recorded, in the answer to whoever takes its task: an addition to the protocol for workers that ask for it by
 * `records`. A worker that does not remember a job would ask for each record by itself.
 */
import type { Request, TaskAcquireReq } from "@resonatehq/sdk";
import { maxUnderWay } from "../../core/engine/journal.ts";
import { isChildOf, journalEntryId } from "../../core/store/ids.ts";
import type { PromiseRecord } from "../../core/store/protocol.ts";
import type { StateMachine, Transition } from "./state-machine.ts";

/** The most that is given, in records and in characters: of a job with more the worker reads them by itself. */
const MOST = { records: 100, characters: 200_000 };

type Acquire = TaskAcquireReq & { data: { records?: number } };

/** Has the state machine answer the request, and adds the records that it asks for. */
export function acquire(machine: StateMachine, now: number, request: Acquire): Transition {
  const { id, records: from } = request.data;
  const woken = [...(machine.tasks.get(id)?.resumes ?? [])].filter((each) => isChildOf(id, each));
  const { response, changes } = machine.apply(now, request);
  if (from === undefined || response.head.status !== 200) return { response, changes };
  const found = new Map<string, PromiseRecord>();
  let room = MOST.characters;
  const look = (each: string): boolean => {
    const get = { kind: "promise.get", head: request.head, data: { id: each } } satisfies Request;
    const { response, changes: more } = machine.apply(now, get);
    changes.push(...more);
    if (response.head.status !== 200) return false;
    const { promise } = response.data as { promise: PromiseRecord };
    room -= (promise.param.data?.length ?? 0) + (promise.value.data?.length ?? 0);
    found.set(each, promise);
    return true;
  };
  for (const each of woken.slice(0, MOST.records)) look(each);
  // As many may be missing before one that is there as a worker may have under way.
  for (let n = from, missing = 0; from > 0 && missing < maxUnderWay(n - missing - 1); n++) {
    missing = look(journalEntryId(id, n)) ? 0 : missing + 1;
    if (room < 0 || found.size > MOST.records) return { response, changes };
  }
  const { preload, ...data } = response.data as { preload: PromiseRecord[] };
  const all = { ...data, preload: [...preload, ...found.values()], records: from };
  return { response: { ...response, data: all }, changes };
}
