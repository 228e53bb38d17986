/**
 * An addition to the protocol: `promise.read` reads several promises at once, leaves out values that are longer than the reader
 * wants, and has the ends of those that are pending pushed to an address as long as its connection is open.
 */
import { type Change, type Outcome, promiseRecord, type StoredPromise } from "./records.ts";
import { carryOut } from "./state-machine.ts";
import type { Store } from "./store.ts";
import { WorkingSet } from "./working-set.ts";

/** How many characters of parameters and values one answer holds. It ends after the promise that exceeds them. */
const MAX_READ_CHARACTERS = 4_000_000;

export interface ReadRequest {
  kind: "promise.read";
  head: { corrId: string; version: string; auth?: string };
  data: {
    ids: readonly string[];
    /** To which the ends of pending promises are pushed. */
    address?: string | undefined;
    /** How many characters of JSON a value may have; a longer one is left out. */
    maxValue?: number | undefined;
  };
}

/** Answers with the promises in the order of their ids, or with those at the beginning; null stands for one that does not exist. */
export function readPromises(store: Store, now: number, { kind, head, data }: ReadRequest): Outcome {
  const { ids, address, maxValue } = data;
  const state = new WorkingSet(store);
  const changes: Change[] = [];
  const records: (object | null)[] = [];
  let characters = 0;
  /** A promise that is past its deadline, and that nothing has timed out. */
  const current = (id: string): StoredPromise | undefined => {
    changes.push(...carryOut(state, now, { kind: "promise.get", head, data: { id } }).changes);
    return state.promise(id);
  };
  for (const id of ids) {
    const stored = store.head(id, maxValue);
    const isDue = stored?.promise.state === "pending" && stored.promise.timeoutAt <= now;
    const promise = isDue ? current(id) : stored?.promise;
    if (address !== undefined && promise?.state === "pending") changes.push({ kind: "watch", address, promise: id });
    const omitted = stored?.omittedCharacters;
    records.push(promise ? { ...promiseRecord(promise), ...(omitted !== undefined && { omitted }) } : null);
    characters += (promise?.param.data?.length ?? 0) + (promise?.value.data?.length ?? 0);
    if (characters > MAX_READ_CHARACTERS) break;
  }
  state.write();
  return { response: { kind, head: { status: 200 }, data: { records } }, changes };
}
