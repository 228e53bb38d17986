/** Events as callers are told them: what the log refers to is read from the promises. */

import type { StartedJob } from "../../core/jobs/caller/caller-record.ts";
import { Names } from "../../core/jobs/names.ts";
import { viewOf } from "../../core/jobs/status.ts";
import type { ResonateClient } from "../../core/store/client.ts";
import { decodeValue } from "../../core/store/codec.ts";
import { boundary, FIRST_PART, partsIn, uriOf } from "../../core/tools/results.ts";
import type { LoggedEvent } from "./event-log.ts";

/** The name of the event that a job has ended. */
export const JOB_ENDED = "job.ended";

/** The most characters of a result that an event holds, as JSON text. */
const MAX_RESULT = 16_000;

/** An event as clients get it. */
export interface Occurrence {
  eventId: string;
  name: string;
  timestamp: string;
  data: Record<string, unknown>;
  cursor?: string;
}

/** The event that a job has ended; `name` is the job's. */
export function endedEvent({ id, kind, state, startedAt, settledAt }: StartedJob, name: string): LoggedEvent {
  return {
    id: `ended_${token(name)}`,
    name: JOB_ENDED,
    at: settledAt ?? Date.now(),
    job: id,
    kind,
    data: JSON.stringify({ state, startedAt, settledAt }),
  };
}

/** Text in a form that a header and the signature of a web hook may hold. */
const token = (text: string): string =>
  encodeURIComponent(text).replace(/[.!'()*~]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);

export interface Telling {
  client: Pick<ResonateClient, "call">;
  namespace: string;
  key: string;
  /** The address of a job's page; undefined where there is none. */
  pageOf(name: string): Promise<string | undefined>;
}

/** An event of the log with all that is told of it. */
export async function occurrenceOf(event: LoggedEvent, telling: Telling): Promise<Occurrence> {
  const name = new Names([], telling.namespace, telling.key).nameIn(event.job);
  const { state, startedAt, settledAt } = JSON.parse(event.data);
  const record = await telling.client.call({ kind: "promise.get", data: { id: event.job } });
  const { result, ...view } = viewOf(name, {
    state: record?.state ?? state,
    value: record && decodeValue(record.value),
    createdAt: record?.createdAt ?? startedAt,
    settledAt: record?.settledAt ?? settledAt ?? undefined,
  });
  const page = await telling.pageOf(name);
  return {
    eventId: event.id,
    name: event.name,
    timestamp: new Date(event.at).toISOString(),
    data: { ...view, kind: event.kind, ...bounded(name, result), ...(page !== undefined && { view_url: page }) },
  };
}

/** A result where it is short enough; else how long it is, how it begins, and where it is. */
function bounded(name: string, result: unknown): object {
  if (result === undefined) return {};
  const parts = partsIn(result);
  const text = parts?.text ?? JSON.stringify(result);
  if (!parts && text.length <= MAX_RESULT) return { result };
  const part = text.slice(0, boundary(text, FIRST_PART));
  const rest = { offset: 0, part, next_offset: part.length, uri: uriOf(name) };
  return { summary: { characters: parts?.characters ?? text.length, ...rest } };
}
