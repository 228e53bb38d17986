/** Makes events as callers receive them, from the log and from the promises that it refers to. */

import { EVENT, type Job, LEFT_OUT } from "../../core/author/index.ts";
import {
  isEmittedByJob,
  JOB_ENDED,
  JOB_OUTPUT,
  JOB_PROGRESS,
  JOB_QUESTION,
  type JobEvent,
  Names,
  type NewestEntry,
  type Occurrence,
  type ProgressFeeds,
  type StartedJob,
  viewOf,
} from "../../core/jobs/index.ts";
import {
  decodeValue,
  endOf,
  getOf,
  orIfUndecryptable,
  outputId,
  type PromiseRecord,
  partsIn,
  type ResonateClient,
} from "../../core/resonate/index.ts";
import { boundary, FIRST_PART, uriOf } from "../../core/tools/index.ts";

/** The longest result that an event holds, in characters of JSON text. */
const MAX_RESULT_CHARACTERS = 16_000;

/** The event of a job's end; `name` is the job's name. */
export function endedEvent({ id, kind, state, startedAt, settledAt }: StartedJob, name: string): JobEvent {
  return {
    id: `ended_${token(name)}`,
    name: JOB_ENDED,
    at: settledAt ?? Date.now(),
    job: id,
    kind,
    data: JSON.stringify({ state, startedAt, settledAt }),
  };
}

/** The events in an entry of a job's progress feed: its questions and its progress. */
export function feedEvents(
  { id, name, kind }: { id: string; name: string; kind: string },
  { n, entry, writtenAt }: NewestEntry,
): JobEvent[] {
  if (!entry) return [];
  const from = { at: writtenAt, job: id, kind };
  const questions = Object.keys(entry.questions).map((key) => ({
    ...from,
    id: `question_${token(name)}_${token(key)}`,
    name: JOB_QUESTION,
    data: JSON.stringify({ n, key }),
  }));
  const { message, progress } = entry;
  if (message === undefined && !progress) return questions;
  const latest = { ...from, id: `progress_${token(name)}_${n}`, name: JOB_PROGRESS, data: JSON.stringify({ n }) };
  return [...questions, latest];
}

/** The event of a job's `n`th output: a partial result, or an event of its author. Undefined for {@link LEFT_OUT}. */
export function outputEvent(
  { id, name, kind }: { id: string; name: string; kind: string },
  n: number,
  { param, createdAt: at }: PromiseRecord,
): JobEvent | undefined {
  const { [EVENT]: own = JOB_OUTPUT } = (decodeValue(param) ?? {}) as { [EVENT]?: string };
  if (own === LEFT_OUT[EVENT]) return undefined;
  const data = JSON.stringify({ output: n });
  return { id: `${own === JOB_OUTPUT ? "output" : "event"}_${token(name)}_${n}`, name: own, at, job: id, kind, data };
}

/** Escapes text for the headers and the signature of a web hook. */
const token = (text: string): string =>
  encodeURIComponent(text).replace(/[.!'()*~]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);

/** What the full data of an event is read from. */
export interface OccurrenceSources {
  client: Pick<ResonateClient, "call">;
  feeds: Pick<ProgressFeeds, "entry">;
  namespace: string;
  key: string;
  /** The deployment's definitions, by which results of foreign workers are checked. */
  jobs: readonly Job[];
  labels: readonly string[];
  /** Whether the log has no later event of the same type and job name. */
  isLast: boolean;
  /** The address of a job's page; undefined without one. */
  pageOf(name: string): Promise<string | undefined>;
}

/** An event of the log with its full data. */
export async function occurrenceOf(event: JobEvent, sources: OccurrenceSources): Promise<Occurrence> {
  const name = namesOf(sources).nameIn(event.job);
  const dataOf = event.name === JOB_ENDED ? jobEnd : isEmittedByJob(event.name) ? outputOf : feedOf;
  const data = await dataOf(event, sources, name);
  const page = await sources.pageOf(name);
  const view = page !== undefined && { view_url: page };
  const { labels } = sources;
  return {
    eventId: event.id,
    name: event.name,
    timestamp: new Date(event.at).toISOString(),
    data: { job_name: name, kind: event.kind, ...(labels.length > 0 && { labels }), ...data, ...view },
  };
}

/** What cannot be decrypted is reported as if it were removed. */
const asRemoved = orIfUndecryptable(undefined);

const namesOf = ({ jobs, namespace, key }: OccurrenceSources) => new Names(jobs, namespace, key);

async function jobEnd(event: JobEvent, sources: OccurrenceSources, name: string): Promise<object> {
  const { client, isLast } = sources;
  const { state, startedAt, settledAt } = JSON.parse(event.data);
  const found = await client.call(getOf(event.job)).catch(asRemoved);
  // A job that was removed may have been followed by another one of its name, whose promise says nothing about this end.
  const record = isLast && found?.state !== "pending" ? found : undefined;
  // A job of an earlier deployment may have no definition here.
  const plain = record && { state: endOf(record), value: decodeValue(record.value) };
  const ended = (record && namesOf(sources).decode(record)) ?? plain;
  const { result, ...view } = viewOf(name, {
    state: ended?.state ?? state,
    value: ended?.value,
    createdAt: record?.createdAt ?? startedAt,
    settledAt: record?.settledAt ?? settledAt ?? undefined,
  });
  return { ...view, ...bounded(name, result) };
}

/** The content of a question or of a progress entry; without details once the job is removed. */
async function feedOf(event: JobEvent, { feeds }: OccurrenceSources): Promise<object> {
  const { n, key } = JSON.parse(event.data) as { n: number; key?: string };
  const entry = (await feeds.entry(event.job, n).catch(asRemoved))?.entry;
  if (key === undefined) return { ...(entry?.message !== undefined && { message: entry.message }), ...entry?.progress };
  const question = entry?.questions[key]?.question;
  if (!question) return { question: key };
  const { message, requestedSchema, answeredBy = "user" } = question;
  return { question: key, message, answered_by: answeredBy, answer_schema: requestedSchema };
}

/** A partial result with its offset, or the payload of an author's event; without its value once the job is removed. */
async function outputOf(event: JobEvent, { client }: OccurrenceSources): Promise<object> {
  const { output } = JSON.parse(event.data) as { output: number };
  const record = await client.call(getOf(outputId(event.job, output))).catch(asRemoved);
  const value = record && decodeValue(record.param);
  if (event.name !== JOB_OUTPUT) return value ? { payload: (value as { payload: unknown }).payload } : {};
  if (!record) return { offset: output - 1 };
  const text = JSON.stringify(value ?? null);
  if (text.length <= MAX_RESULT_CHARACTERS) return { offset: output - 1, output: value ?? null };
  const part = text.slice(0, boundary(text, FIRST_PART));
  return { offset: output - 1, summary: { characters: text.length, part } };
}

/** A short result as it is; of a longer one its length, its beginning and its URI. */
function bounded(name: string, result: unknown): object {
  if (result === undefined) return {};
  const parts = partsIn(result);
  const text = parts?.text ?? JSON.stringify(result);
  if (!parts && text.length <= MAX_RESULT_CHARACTERS) return { result };
  const part = text.slice(0, boundary(text, FIRST_PART));
  const rest = { offset: 0, part, next_offset: part.length, uri: uriOf(name) };
  return { summary: { characters: parts?.characters ?? text.length, ...rest } };
}
