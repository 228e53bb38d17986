/** Lists the jobs that a caller started: by the caller's record or, without authentication, by a search. */
import { orIfUndecryptable } from "../resonate/connection/failures.ts";
import type { CallerRecord, ListedJob, ListQuery, ObservedJob } from "./caller-record.ts";
import type { DurablePromise } from "./durable-promise.ts";
import { type Cursor, type OwnStep, searchOwn } from "./own-jobs.ts";
import { ReadRoom } from "./read-room.ts";
import { entryOfJob } from "./record-entry.ts";
import type { RemoteStore } from "./remote-store.ts";

/** How many characters of JSON the value of a listed job may have: enough for an error, which says whether the deadline ended the job. */
const MAX_LISTED_VALUE = 16_000;

export type JobQuery = Omit<ListQuery, "after"> & { cursor?: Cursor | undefined };

/**
 * The jobs that the caller of a store started, newest first. With `state`, a few jobs in another state may be among them. Returns
 * whether these are all of the caller's jobs.
 *
 * @throws {SearchRefused} when the caller has no record, and the server does not search
 */
export async function* listJobs(
  store: RemoteStore,
  query: JobQuery,
  signal?: AbortSignal,
): AsyncGenerator<OwnStep, boolean> {
  const record = store.by.key === "" ? undefined : store.record;
  return yield* record ? recordedJobs(store, record, query, signal) : searchedJobs(store, query, signal);
}

/** A search finds the promises of jobs alone, so each is completed when it is taken. */
async function* searchedJobs(
  store: RemoteStore,
  query: JobQuery,
  signal?: AbortSignal,
): AsyncGenerator<OwnStep, boolean> {
  const steps = searchOwn(store.client, store.names, query, signal);
  for (;;) {
    const { done, value } = await steps.next();
    if (done) return value;
    const { job } = value;
    const promise = job?.promise && (await store.complete(job.promise, signal));
    yield job && promise ? { ...value, job: { ...job, promise } } : value;
  }
}

async function* recordedJobs(
  store: RemoteStore,
  record: CallerRecord,
  { cursor, ...filter }: JobQuery,
  signal?: AbortSignal,
): AsyncGenerator<OwnStep, boolean> {
  const { names } = store;
  let after = cursor && { startedAt: cursor.startedAt, id: names.idInList(cursor.name) };
  const room = new ReadRoom();
  for (;;) {
    const listed = await record.list({ ...filter, after });
    const read = async ({ id, isSearchEnd }: ListedJob) => {
      if (isSearchEnd) return undefined;
      const name = names.nameIn(id);
      // The results of workers of another group are checked.
      const maxValue = names.named(name)?.group === undefined ? MAX_LISTED_VALUE : undefined;
      return store.get(name, signal, maxValue).catch(orIfUndecryptable("unread" as const));
    };
    const charactersOf = (found: Awaited<ReturnType<typeof read>>) =>
      typeof found === "object" ? found.characters : 0;
    const isBounded = () => store.client.readsMany() === true;
    const promises = await room.read(listed, read, charactersOf, { isBounded });
    // Reading ends here as at the end of a search if the jobs are too large to read more of them.
    const rows = listed
      .slice(0, promises.length)
      .map((row, i) => (room.isFull && i === promises.length - 1 ? { ...row, isSearchEnd: true as const } : row));
    await correct(store, record, listed.slice(0, promises.length), promises);
    for (const [i, { id, startedAt, labels, isSearchEnd }] of rows.entries()) {
      const [name, promise] = [names.nameIn(id), promises[i]];
      const isUndecryptable = promise === "unread";
      const job = promise && !isUndecryptable ? { name, job: promise.job, startedAt, promise, labels } : undefined;
      yield { job, cursor: { startedAt, name }, isUndecryptable, ...(isSearchEnd && { isSearchEnd }) };
    }
    const last = rows.at(-1);
    if (!last || (rows.length < filter.limit && !last.isSearchEnd)) return true;
    after = last;
  }
}

/** Brings the record up to date with the promises that it lists. */
async function correct(
  { by, names }: RemoteStore,
  record: CallerRecord,
  rows: readonly ListedJob[],
  promises: readonly (DurablePromise | "unread" | undefined)[],
): Promise<void> {
  const changed = rows.flatMap(({ id, state, isSearchEnd }, i): ObservedJob[] => {
    const promise = promises[i];
    if (isSearchEnd || promise === "unread" || promise?.state === state) return [];
    if (promise) return [entryOfJob(promise, by.key)];
    // Jobs of other kinds are not read: an earlier or later deployment may have those kinds.
    return names.find(id) ? [{ id }] : [];
  });
  if (changed.length > 0) await record.note(changed, true);
}
