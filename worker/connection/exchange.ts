/** How a worker sends its requests to the Resonate server: by Node's own client, several at a time. */
import http from "node:http";
import https from "node:https";
import { text } from "node:stream/consumers";
import { type Exchange, MAX_BATCH_LINES, NDJSON } from "../../core/resonate/index.ts";

/** The statuses that ask to repeat the request at another address. */
const REDIRECT_STATUSES = [307, 308];
const MAX_REDIRECTS = 5;

/** Posts with Node's global agents, which keep connections and use a proxy as `fetch` does, but have less overhead. */
export const post: Exchange = async (url, body, { timeout, signal, type = "application/json" }) => {
  // Uses a controller per request, because timeout signals would stay in memory until they are due.
  const ended = new AbortController();
  const late = () => ended.abort(new DOMException("no answer in time", "TimeoutError"));
  const leave = () => ended.abort(signal?.reason);
  const timer = setTimeout(late, timeout);
  if (signal?.aborted) leave();
  else signal?.addEventListener("abort", leave, { once: true });
  const options = { method: "POST", headers: { "content-type": type }, signal: ended.signal };
  try {
    for (let target = url, redirects = 0; ; redirects++) {
      const answer = await send(target, body, options);
      const { statusCode: status = 0, headers } = answer;
      const content = await text(answer);
      if (!REDIRECT_STATUSES.includes(status) || !headers.location || redirects === MAX_REDIRECTS)
        return { status, text: content };
      target = new URL(headers.location, target).href;
    }
  } catch (error) {
    // The request's own error says only that it was aborted; this throws the reason.
    ended.signal.throwIfAborted();
    throw error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", leave);
  }
};

function send(url: string, body: string, options: http.RequestOptions): Promise<http.IncomingMessage> {
  const { request } = url.startsWith("https:") ? https : http;
  return new Promise((resolve, reject) => {
    request(url, options, resolve).on("error", reject).end(body);
  });
}

/** The largest request that joins a batch, and the largest batch. */
const MAX_BATCH_CHARACTERS = 64_000;

/** How long a server that refused a batch gets single requests: another server may replace it. */
const SINGLE_REQUESTS_MS = 5 * 60_000;

/** The statuses by which a server that does not know batches refuses one; it has done nothing then. */
const REFUSING_STATUSES = [400, 404, 405, 413, 415];

type Answer = Awaited<ReturnType<Exchange>>;

interface PendingRequest {
  url: string;
  body: string;
  options: Parameters<Exchange>[2];
  outcome: PromiseWithResolvers<Answer>;
}

/**
 * Sends requests that are made at the same moment as one batch. Embedded servers accept batches, because HTTP takes them longer
 * than the work itself. Other servers refuse the first batch, and then get single requests for a while.
 */
export function inBatches(exchange: Exchange): Exchange {
  let refusedUntil = 0;
  let pending: PendingRequest[] = [];
  const flush = () => {
    const requests = pending;
    pending = [];
    for (const batch of divideIntoBatches(requests)) void sendBatch(batch);
  };
  const sendBatch = async (batch: readonly PendingRequest[]) => {
    const answers = batch.length > 1 ? await sendLines(batch).catch((error) => ({ error })) : undefined;
    if (batch.length > 1 && !answers) refusedUntil = performance.now() + SINGLE_REQUESTS_MS;
    for (const [i, { url, body, options, outcome }] of batch.entries()) {
      if (!answers) exchange(url, body, options).then(outcome.resolve, outcome.reject);
      else if ("error" in answers) outcome.reject(answers.error);
      else outcome.resolve(answers[i] as Answer);
    }
  };
  /** Undefined if the server does not accept batches. */
  const sendLines = async (batch: readonly PendingRequest[]): Promise<Answer[] | undefined> => {
    const [{ url, options }] = batch as [PendingRequest];
    const body = batch.map((request) => request.body).join("\n");
    const answer = await exchange(url, body, { timeout: options.timeout, type: NDJSON });
    if (REFUSING_STATUSES.includes(answer.status)) return undefined;
    if (answer.status !== 200) return batch.map(() => answer);
    const lines = answer.text.split("\n");
    return lines.length === batch.length ? lines.map((text) => ({ status: 200, text })) : undefined;
  };
  return (url, body, options) => {
    if (performance.now() < refusedUntil || body.length > MAX_BATCH_CHARACTERS) return exchange(url, body, options);
    const { signal } = options;
    if (signal?.aborted) return Promise.reject(signal.reason);
    const outcome = Promise.withResolvers<Answer>();
    if (pending.length === 0) setImmediate(flush);
    pending.push({ url, body, options, outcome });
    return signal ? unlessAborted(outcome.promise, signal) : outcome.promise;
  };
}

/** Divides requests into batches, each for one address and within the limits. */
function divideIntoBatches(requests: readonly PendingRequest[]): PendingRequest[][] {
  const batches: PendingRequest[][] = [];
  let [batch, length]: [PendingRequest[], number] = [[], 0];
  for (const request of requests) {
    length += request.body.length;
    if (
      batch.length === 0 ||
      batch.length === MAX_BATCH_LINES ||
      length > MAX_BATCH_CHARACTERS ||
      request.url !== batch[0]?.url
    ) {
      batch = [];
      batches.push(batch);
      length = request.body.length;
    }
    batch.push(request);
  }
  return batches;
}

/** The outcome of `promise`, or a rejection with the reason of `signal` as soon as it aborts. */
function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const leave = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", leave, { once: true });
  return Promise.race([promise, aborted.promise]).finally(() => signal.removeEventListener("abort", leave));
}
