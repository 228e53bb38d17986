/** Receives what outside systems send to callbacks of jobs: `POST /callbacks/…`, an address that a worker has sealed. */

import { ProgressFeeds, seedOf } from "../../core/jobs/index.ts";
import {
  CALLBACKS_PURPOSE,
  childOf,
  decodeValue,
  exactJsonOf,
  getOf,
  isTooDeep,
  MAX_DEPTH,
  type PromiseRecord,
  type Requests,
  readBytes,
  rootOf,
  unheldNumberIn,
  unheldReason,
} from "../../core/resonate/index.ts";
import { schemaIssues, type Visit } from "../../core/tools/index.ts";
import type { Seal } from "../../functions/auth/seal.ts";
import { limitedResponse, type RateLimit } from "../../functions/http/limits.ts";
import type { RefusedTries } from "../../functions/http/refused-tries.ts";

/** The largest body, in bytes. */
const MAX_BODY = 100_000;

/** How much a refusal says about a body that does not fit. */
const MAX_ISSUES = 5;
const MAX_ISSUE_CHARACTERS = 1_000;

export interface CallbackOptions {
  client: Requests;
  /** Opens the addresses. */
  seal: Seal;
  tries: RefusedTries;
  limit: RateLimit | undefined;
}

const answer = (status: number, message: string) =>
  Response.json(status < 300 ? { status: message } : { error: message }, {
    status,
    headers: { "cache-control": "no-store" },
  });

/** Answers `POST /callbacks/:sealed`. Anybody may call, so a void address counts like a refused token. */
export async function receive(c: Visit, { client, seal, tries, limit }: CallbackOptions): Promise<Response> {
  const request = c.req.raw;
  const callback =
    request.method === "POST" ? await seal.open(CALLBACKS_PURPOSE, c.req.param("sealed") ?? "") : undefined;
  const [id, seed] = Array.isArray(callback?.value) ? callback.value.map(String) : [];
  if (!callback || id === undefined || seed === undefined) {
    tries.add(request);
    return answer(404, "This address is void, or its time is over.");
  }
  const limited = await limit?.(`callback ${id}`, { weight: 1 });
  return limited ? limitedResponse(limited) : settle(client, request, { id, seed, until: callback.until });
}

interface Callback {
  /** The id of its promise. */
  id: string;
  /** The seed of the job for which the address was made. */
  seed: string;
  /** When that job times out, in milliseconds since the epoch. */
  until: number;
}

/** Settles the promise of a callback with the request's body. Only the first body counts. */
async function settle(client: Requests, request: Request, { id, seed, until }: Callback): Promise<Response> {
  const body = await readBytes(request, MAX_BODY);
  if (body === 413) return answer(413, `A body has up to ${MAX_BODY} bytes.`);
  if (body === 408) return answer(408, "The body did not arrive in time.");
  const text = new TextDecoder().decode(body);
  // The edge and the job's own code may recurse into the value.
  if (isTooDeep(text)) return answer(400, `The body is nested more than ${MAX_DEPTH} levels deep.`);
  const payload = parsedAs(text, request.headers.get("content-type") ?? "");
  if (!payload) return answer(400, "The body is not JSON.");
  const unheld = unheldNumberIn(payload.value, true);
  if (unheld) return answer(400, `The body has ${unheldReason(unheld)}. Send it as text.`);
  const get = (of: string) => client.call(getOf(of), request.signal);
  const job = await get(rootOf(id));
  // A job that was removed and started again has the same ids.
  if (job?.state !== "pending" || seedIn(job) !== seed) return answer(410, "The job has ended.");
  let promise = await get(id);
  if (promise?.state === "pending") {
    const problem = await invalidBody(promise, payload.value);
    if (problem !== undefined) return answer(422, `The body does not fit: ${problem}`);
  }
  // A body that comes before the job waits for it is kept.
  promise ??= await client.call(childOf(id, until));
  if (promise?.state === "pending") {
    // Stored as text, so that it cannot be mistaken for this server's own marks.
    if (await new ProgressFeeds(client).answer(id, JSON.stringify(payload.value))) return answer(200, "received");
    promise = await get(id);
  }
  return promise?.state === "resolved"
    ? answer(409, "Another one was received before.")
    : answer(410, "The job does not wait for it any more.");
}

/** The seed of a job, which no other job has. */
function seedIn(job: PromiseRecord): string {
  const { seed } = (decodeValue(job.param) ?? {}) as { seed?: unknown };
  return typeof seed === "string" ? seed : seedOf(job);
}

/** The value of a body: parsed if its type is JSON, otherwise its text; null for an empty body. Undefined for malformed JSON. */
function parsedAs(text: string, type: string): { value: unknown } | undefined {
  if (text === "") return { value: null };
  if (!/\bjson\b/i.test(type)) return { value: text };
  const value = exactJsonOf(text);
  return value === undefined ? undefined : { value };
}

/** Why a value does not fit the schema that the job waits for; undefined if it fits. */
async function invalidBody({ param }: PromiseRecord, value: unknown): Promise<string | undefined> {
  const { schema } = (decodeValue(param) ?? {}) as { schema?: object };
  if (!schema) return undefined;
  const issues = await schemaIssues(schema, value);
  if (issues.length === 0) return undefined;
  const unheld = unheldNumberIn(value);
  const hint = unheld ? [`it has ${unheldReason(unheld)}, at ${unheld.path}`] : [];
  return [...issues.slice(0, MAX_ISSUES), ...hint].join("; ").slice(0, MAX_ISSUE_CHARACTERS);
}
