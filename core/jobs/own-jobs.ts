/** Finds the jobs that a caller started by a search for their tags, newest first, if there is no record of them. */
import type { Job } from "../author/job.ts";
import { CALLER_TAG } from "../resonate/codec.ts";
import type { Requests, ResonateClient } from "../resonate/connection/client.ts";
import type { PromiseRecord } from "../resonate/connection/protocol.ts";
import { isRoot, oneForm, rootOf } from "../resonate/ids.ts";
import { KIND_TAG, labelsOf } from "./caller-record.ts";
import type { DurablePromise } from "./durable-promise.ts";
import type { Names } from "./names.ts";

export interface OwnJob {
  name: string;
  job: Job;
  /** When this caller first started it, in milliseconds since the epoch. */
  startedAt: number;
  /** Undefined when it has to be read first. */
  promise?: DurablePromise | undefined;
  labels: readonly string[];
}

/** The job after which a list goes on. */
export type Cursor = Pick<OwnJob, "startedAt" | "name">;

/** One step through a caller's jobs: a job, or undefined if its promise is gone, and the place at which the list goes on. */
export interface OwnStep {
  job: OwnJob | undefined;
  /** Whether the promise is there, and cannot be decrypted. */
  isUndecryptable?: boolean;
  cursor: Cursor;
  /** The search has gone through many jobs in this step, and the next step goes through as many. */
  isSearchEnd?: boolean;
}

/** The most promises that a search looks at. */
const MAX_FOUND = 5_000;

/**
 * How many promises a search asks for at once. Results come with the promises, so the first page is small, and later pages
 * aim at a number of characters.
 */
const SEARCH_PAGE = { first: 10, max: 1_000, characters: 2_000_000 };

/** A page of the promises that have a caller's tags, and the size of the next page. */
export async function searchPage(
  client: Pick<ResonateClient, "search">,
  owner: string,
  {
    kind,
    limit = SEARCH_PAGE.first,
    cursor,
  }: { kind?: string | undefined; limit?: number; cursor?: string | undefined },
  signal?: AbortSignal,
) {
  const tags = { [CALLER_TAG]: owner, ...(kind !== undefined && { [KIND_TAG]: kind }) };
  const page = await client.search({ tags, limit, ...(cursor !== undefined && { cursor }) }, signal);
  const sizes = page.promises.map(({ value, param }) => (value.data?.length ?? 0) + (param.data?.length ?? 0) + 500);
  const averageCharacters = Math.max(1, sizes.reduce((sum, size) => sum + size, 0) / Math.max(1, sizes.length));
  const next = Math.min(
    SEARCH_PAGE.max,
    limit * 4,
    Math.max(1, Math.floor(SEARCH_PAGE.characters / averageCharacters)),
  );
  return { promises: page.promises, cursor: page.cursor ?? undefined, limit: next };
}

/**
 * Searches for a caller's jobs. Returns whether these are all, as a search looks at a bounded number of promises.
 *
 * @throws {SearchRefused}
 */
export async function* searchOwn(
  client: Requests,
  names: Names,
  {
    kind,
    search,
    cursor: after,
  }: { kind?: string | undefined; search?: string | undefined; cursor?: Cursor | undefined },
  signal?: AbortSignal,
): AsyncGenerator<OwnStep, boolean> {
  const jobs: OwnJob[] = [];
  let readCount = 0;
  let next: { limit?: number; cursor?: string | undefined } = {};
  do {
    const page = await searchPage(client, names.owner, { kind, ...next }, signal);
    for (const record of page.promises) {
      const found = names.find(rootOf(record.id));
      // The record that the caller started a shared job is a child of the job's promise.
      const isJob = isRoot(record.id);
      const promise = found && isJob ? inList(names, found.job, record) : undefined;
      const labels = labelsOf(promise?.call);
      if (found && (promise || !isJob) && matchesSearch(found, labels, search))
        jobs.push({ ...found, startedAt: record.createdAt, promise, labels });
    }
    readCount += page.promises.length;
    next = page;
  } while (next.cursor !== undefined && readCount < MAX_FOUND);
  for (const job of jobs.sort(newestFirst)) {
    if (after && newestFirst(after, job) >= 0) continue;
    yield { job, cursor: { startedAt: job.startedAt, name: job.name } };
  }
  return next.cursor === undefined;
}

/**
 * A job's promise without its result, which is decoded only where it is to be checked. An error stays, as it tells whether the
 * deadline ended the job.
 */
function inList(names: Names, { group }: Job, record: PromiseRecord): DurablePromise | undefined {
  const isRead = record.state === "rejected" || group !== undefined;
  const promise = names.decode(isRead ? record : { ...record, value: {} });
  if (promise?.state === "resolved") promise.value = undefined;
  return promise;
}

/** The different words to search for. Only ASCII letters ignore case, as in the storage of a caller's object. */
export const wordsOf = (search: string): string[] => [...new Set(lower(search).split(/\s+/).filter(Boolean))];

const lower = (text: string): string => oneForm(text).replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

function matchesSearch({ name, job }: Pick<OwnJob, "name" | "job">, labels: readonly string[], search = ""): boolean {
  const texts = [name, job.kind, ...labels].map(lower);
  return wordsOf(search).every((word) => texts.some((text) => text.includes(word)));
}

function newestFirst(a: Cursor, b: Cursor): number {
  return b.startedAt - a.startedAt || (a.name < b.name ? 1 : a.name > b.name ? -1 : 0);
}

/** A cursor as text. It names no caller: a list always has the jobs of the caller who asks. */
export const textOf = ({ startedAt, name }: Cursor): string => `${startedAt} ${name}`;

/** Reads a text that {@link textOf} wrote; undefined for any other text. */
export function cursorIn(text: string): Cursor | undefined {
  const [, startedAt, name] = /^(\d{1,16}) (.+)$/s.exec(text) ?? [];
  return startedAt === undefined || name === undefined ? undefined : { startedAt: Number(startedAt), name };
}
