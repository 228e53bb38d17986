/** The edge's side of the callers' objects. */
import type { CallerRecord, ListQuery, SeenJob, StartedJob } from "../../core/jobs/caller/caller-record.ts";
import { ResonateRefused, ResonateUnavailable } from "../../core/store/failures.ts";

/** An answer, or why the Resonate server did not allow for one: an error's class does not survive the call. */
export type Answer<T> = { done: T } | { failed: { message: string; status: number | undefined; isRefused: boolean } };

/** The part of a Durable Object namespace that is used. */
export interface CallerNamespace {
  idFromName(name: string): object;
  get(id: object): CallerMethods;
}

/** What a caller's object answers: see {@link CallerRecord}. */
export interface CallerMethods {
  reserve(key: string, job: StartedJob, most: number): Promise<Answer<"reserved" | "known" | "full">>;
  note(jobs: readonly SeenJob[], onlyKnown: boolean): Promise<void>;
  list(key: string, query: ListQuery): Promise<Answer<Pick<StartedJob, "id" | "state" | "startedAt">[]>>;
}

/** The record of each caller, by its key: in one object of the deployment, which is its namespace at the Resonate server. */
export function createRecords(objects: CallerNamespace, namespace: string): (key: string) => CallerRecord {
  return (key) => {
    const object = () => objects.get(objects.idFromName(`caller ${namespace}${key}`));
    return {
      reserve: (job, most) => ask(() => object().reserve(key, job, most)),
      list: (query) => ask(() => object().list(key, query)),
      note: (jobs, onlyKnown = false) => reached(() => object().note(jobs, onlyKnown)),
    };
  };
}

async function ask<T>(call: () => Promise<Answer<T>>): Promise<T> {
  const answer = await reached(call);
  if ("done" in answer) return answer.done;
  const { message, isRefused, status } = answer.failed;
  throw new (isRefused ? ResonateRefused : ResonateUnavailable)(message, { status });
}

async function reached<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    throw new ResonateUnavailable("the record of its caller could not be reached", { cause });
  }
}

/** What holds where no Durable Object is bound as `CALLER`; undefined where nothing is missing. */
export function withoutRecords({ CALLER, MAX_JOBS }: { CALLER?: unknown; MAX_JOBS: number }) {
  if (CALLER) return undefined;
  const starts = MAX_JOBS > 0 ? `no job is started, as MAX_JOBS (${MAX_JOBS}) cannot be counted, and ` : "";
  return `wrangler.toml binds no CALLER (class CallerObject): ${starts}list_jobs searches the Resonate server, where that allows it`;
}
