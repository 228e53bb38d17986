import { LINES, MOST_LINES } from "../../core/store/batch-lines.ts";
import type { Exchange } from "../../core/store/client.ts";
import type { Posts } from "./exchange.ts";

/** The longest request that is sent along with others, and how long they are together, in characters. */
const LONGEST = 64_000;

/** After this time a server that refused to be asked so is asked so again, in milliseconds: another may be in its place. */
const REFUSED_FOR = 5 * 60_000;

/** With these whoever takes no lines answers, and has done nothing. */
const REFUSALS = [400, 404, 405, 413, 415];

type Answer = Awaited<ReturnType<Exchange>>;

interface Asked {
  url: string;
  body: string;
  options: Parameters<Exchange>[2];
  answered: PromiseWithResolvers<Answer>;
}

/**
 * Sends what is asked at the same moment as one request, to servers that take that: the embedded ones. Reading requests and
 * writing answers takes them longer than what is asked does. Others refuse the first, and get each by itself for a while.
 */
export function batched(post: Posts): Exchange {
  let refusedUntil = 0;
  let waiting: Asked[] = [];
  const flush = () => {
    const all = waiting;
    waiting = [];
    for (const batch of divided(all)) void send(batch);
  };
  const send = async (batch: readonly Asked[]) => {
    const answers = batch.length > 1 ? await sendLines(batch).catch((error) => ({ error })) : undefined;
    if (batch.length > 1 && !answers) refusedUntil = performance.now() + REFUSED_FOR;
    for (const [i, { url, body, options, answered }] of batch.entries()) {
      if (!answers) post(url, body, options).then(answered.resolve, answered.reject);
      else if ("error" in answers) answered.reject(answers.error);
      else answered.resolve(answers[i] as Answer);
    }
  };
  /** Undefined where lines are not taken. */
  const sendLines = async (batch: readonly Asked[]): Promise<Answer[] | undefined> => {
    const [{ url, options }] = batch as [Asked];
    const body = batch.map((each) => each.body).join("\n");
    const answer = await post(url, body, { timeout: options.timeout, type: LINES });
    if (REFUSALS.includes(answer.status)) return undefined;
    if (answer.status !== 200) return batch.map(() => answer);
    const lines = answer.text.split("\n");
    return lines.length === batch.length ? lines.map((text) => ({ status: 200, text })) : undefined;
  };
  return (url, body, options) => {
    if (performance.now() < refusedUntil || body.length > LONGEST) return post(url, body, options);
    if (options.signal?.aborted) return Promise.reject(options.signal.reason);
    const answered = Promise.withResolvers<Answer>();
    if (waiting.length === 0) setImmediate(flush);
    waiting.push({ url, body, options, answered });
    return until(answered.promise, options.signal);
  };
}

/** Requests to one address, so many that they may be sent together. */
function divided(all: readonly Asked[]): Asked[][] {
  const batches: Asked[][] = [];
  let [batch, length]: [Asked[], number] = [[], 0];
  for (const asked of all) {
    length += asked.body.length;
    if (batch.length === 0 || batch.length === MOST_LINES || length > LONGEST || asked.url !== batch[0]?.url) {
      batch = [];
      batches.push(batch);
      length = asked.body.length;
    }
    batch.push(asked);
  }
  return batches;
}

/** The promise's outcome, or what `signal` is aborted with. */
function until<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    signal.addEventListener("abort", leave, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", leave));
  });
}
