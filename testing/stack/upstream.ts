/** A stand-in for another server. It answers as the test says, and records the requests. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { serveHttp } from "./http-server.ts";

/**
 * An answer of an {@link Upstream}.
 *
 * @example
 * const busy: UpstreamAnswer = { status: 429, headers: { "retry-after": "30" }, body: { error: "too many" }, after: 100 };
 */
export interface UpstreamAnswer {
  /** Default: 200. */
  status?: number;
  headers?: Record<string, string>;
  /** Text is sent as it is, anything else as JSON. Default: nothing. */
  body?: unknown;
  /** The delay of the answer, in milliseconds. Default: 0. */
  after?: number;
  /** Replaces the answer: `reset` resets the connection, `silence` leaves it open and never answers. */
  fault?: "reset" | "silence";
}

/**
 * A request to an {@link Upstream}.
 *
 * @example
 * const keyOf = ({ headers }: UpstreamRequest) => headers["idempotency-key"];
 */
export interface UpstreamRequest {
  method: string;
  url: string;
  /** Names in lower case. */
  headers: Readonly<Record<string, string | string[] | undefined>>;
  body: string;
}

/**
 * A real HTTP server on loopback. See {@link startUpstream}.
 *
 * @example
 * const failTwice = (site: Upstream) => site.answersOnce({ status: 503 }, { fault: "reset" });
 */
export interface Upstream extends AsyncDisposable {
  /** Its origin, such as `http://127.0.0.1:40123`. */
  readonly url: string;
  /** Every request so far, oldest first. */
  readonly requests: readonly UpstreamRequest[];
  /** Sets the answer to all later requests, or a function that creates the answers. */
  answers(answer: UpstreamAnswer | ((request: UpstreamRequest) => UpstreamAnswer)): void;
  /** Sets the answers to the next requests, one each. After these, {@link answers} applies again. */
  answersOnce(...answers: UpstreamAnswer[]): void;
  /** Resolves when there have been `count` requests in total. Rejects after `ms` milliseconds, by default 15,000. */
  waitForRequests(count: number, ms?: number): Promise<void>;
}

/**
 * Starts an HTTP server on loopback, as a stand-in for the servers that durable functions call. It answers 200 until the test
 * sets another answer.
 *
 * @example
 * await using site = await startUpstream();
 * site.answersOnce({ status: 503 }, { fault: "reset" });
 * const statuses = [await fetch(site.url).then(({ status }) => status), await fetch(site.url).catch(() => "reset")];
 * // [503, "reset"], and site.requests.length is 2
 */
export async function startUpstream(): Promise<Upstream> {
  const requests: UpstreamRequest[] = [];
  const nextAnswers: UpstreamAnswer[] = [];
  let answerTo: (request: UpstreamRequest) => UpstreamAnswer = () => ({});
  const checks = new Set<() => void>();

  const serve = async (req: IncomingMessage, res: ServerResponse) => {
    const { method = "GET", url = "/", headers } = req;
    const request = { method, url, headers, body: await text(req) };
    requests.push(request);
    const answer = nextAnswers.shift() ?? answerTo(request);
    for (const check of checks) check();
    if (answer.after) await new Promise((resolve) => setTimeout(resolve, answer.after));
    if (answer.fault === "reset") return void req.socket.resetAndDestroy();
    if (answer.fault === "silence") return;
    const { status = 200, body } = answer;
    const isText = typeof body === "string" || body === undefined;
    const type = isText ? "text/plain; charset=utf-8" : "application/json";
    res.writeHead(status, { "content-type": type, ...answer.headers }).end(isText ? body : JSON.stringify(body));
  };
  const server = await serveHttp((req, res) => void serve(req, res).catch(() => req.socket.destroy()));

  return {
    url: server.url,
    requests,
    answers(answer) {
      answerTo = typeof answer === "function" ? answer : () => answer;
    },
    answersOnce: (...answers) => void nextAnswers.push(...answers),
    waitForRequests(count, ms = 15_000) {
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          checks.delete(check);
          reject(new Error(`there were ${requests.length} requests in ${ms} ms, not ${count}`));
        }, ms);
        const check = () => {
          if (requests.length < count) return;
          checks.delete(check);
          clearTimeout(timer);
          resolve();
        };
        checks.add(check);
        check();
      });
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
