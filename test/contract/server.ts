/**
 * The server under contract: the one at `RESONATE_URL`, otherwise the embedded one as a process. A `RESONATE_TOKEN` must not be
 * limited to a prefix, because searches are refused with such a token.
 * The tests call the server without a library, to see every status.
 */
import { randomUUID } from "node:crypto";
import type { PromiseRecord, Request } from "@resonatehq/sdk";
import { EventSourceParserStream } from "eventsource-parser/stream";
import { NDJSON } from "../../core/resonate/connection/protocol.ts";
import { until } from "../../testing/stack/program.ts";
import { startResonate } from "../support/resonate.ts";

export interface Answer {
  /** The status of the HTTP response. The head of the answer has the same. */
  status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- the tests check what the server sent
  data: any;
}

export interface Message {
  kind: "execute" | "unblock";
  data: { task: { id: string; version: number }; promise: PromiseRecord };
}

/** An open SSE connection. */
export interface Poll extends Disposable {
  /** The next message; throws if none comes in time. */
  next(ms?: number): Promise<Message>;
  /** The messages that have arrived and that `next` has not returned. */
  readonly inbox: Message[];
  readonly contentType: string | null;
}

/** The embedded server, or the release of the standalone server whose rules it follows. */
export type Release = "embedded" | "0.9.8" | "0.10";

export interface Server extends AsyncDisposable {
  readonly url: string;
  call(kind: Request["kind"], data: object): Promise<Answer>;
  /** Posts `body` as it is. */
  post(body: string | Uint8Array<ArrayBuffer>): Promise<{ status: number; text: string }>;
  poll(group: string, id: string): Promise<Poll>;
  /** Opens a poll connection and returns its status. The connection stays open until `close` or the server's end. */
  pollStatus(group: string, id: string): Promise<{ status: number; close(): void }>;
}

/** The server at `RESONATE_URL`, otherwise an embedded one; with `own` always an embedded one, for one test alone. */
export async function startServer({ own = false } = {}): Promise<Server> {
  const { url, program } = await startResonate({ own });
  return connectTo(url, async () => program?.[Symbol.asyncDispose]());
}

/** Finds the server's release, by an addition of the embedded server and by a tag that 0.9.8 ignores. */
export async function releaseOf({ url, call }: Server): Promise<Release> {
  const lines = JSON.stringify({ kind: "promise.get", head: head(), data: { id: unique("none") } });
  const answer = await fetch(url, {
    method: "POST",
    headers: { ...authorization, "content-type": NDJSON },
    body: lines,
  });
  await answer.body?.cancel();
  if (answer.status === 200) return "embedded";
  const tags = { "resonate:delay": "?" };
  const { status } = await call(
    "promise.create",
    promise(unique("release"), { timeoutAt: 1, group: unique("g"), tags }),
  );
  return status === 400 ? "0.10" : "0.9.8";
}

/** A name that no other test run uses. */
export function unique(name: string): string {
  return `${name}-${randomUUID()}`;
}

const token = process.env.RESONATE_TOKEN;
const authorization: Record<string, string> = token ? { authorization: `Bearer ${token}` } : {};

/** The head of a request. */
export function head() {
  return { corrId: randomUUID(), version: "2026-04-01", ...(token && { auth: token }) };
}

export function connectTo(url: string, stop: () => Promise<void>): Server {
  const post = async (body: string | Uint8Array<ArrayBuffer>) => {
    const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
    return { status: response.status, text: await response.text() };
  };

  const openPoll = async (group: string, id: string) => {
    const abort = new AbortController();
    const path = `${url}/poll/${encodeURIComponent(group)}/${encodeURIComponent(id)}`;
    // `fetch` resolves with the headers, which the server must send before the first message.
    const response = await fetch(path, { headers: authorization, signal: abort.signal });
    return { abort, response };
  };

  return {
    url,
    post,

    async call(kind, data) {
      const sent = head();
      const ask = () => post(JSON.stringify({ kind, head: sent, data }));
      let { status, text } = await ask();
      // With Postgres the standalone server fails some of several concurrent calls on one promise; clients repeat them.
      for (let repeated = 0; status === 500 && repeated < 10; repeated++) ({ status, text } = await ask());
      const answer = JSON.parse(text);
      if (answer.head.status !== status)
        throw new Error(`HTTP status ${status}, but in the head ${answer.head.status}`);
      if (answer.head.corrId !== sent.corrId || answer.kind !== kind)
        throw new Error(`an answer to something else: ${text}`);
      return { status, data: answer.data };
    },

    async pollStatus(group, id) {
      const { abort, response } = await openPoll(group, id);
      // Keeps the response, because `fetch` closes the connection of a response that is garbage-collected.
      return { status: response.status, response, close: () => abort.abort() };
    },

    async poll(group, id) {
      const { abort, response } = await openPoll(group, id);
      if (!response.ok || !response.body) throw new Error(`poll answered ${response.status}`);
      const inbox: Message[] = [];
      void collect(response.body, inbox);
      return {
        inbox,
        contentType: response.headers.get("content-type"),
        async next(ms = 5_000) {
          await until("a message", () => inbox.length > 0, ms);
          return inbox.shift() as Message;
        },
        [Symbol.dispose]: () => abort.abort(),
      };
    },

    [Symbol.asyncDispose]: stop,
  };
}

async function collect(body: ReadableStream<Uint8Array>, inbox: Message[]): Promise<void> {
  try {
    const events = body.pipeThrough(new TextDecoderStream() as never).pipeThrough(new EventSourceParserStream());
    for await (const { data } of events) inbox.push(JSON.parse(data));
  } catch {
    // The test closed the connection or ended the server.
  }
}

/** The data of `promise.create` as a client sends it. With `group`, the promise has a task that is dispatched there. */
export function promise(id: string, { group, timeoutAt = Date.now() + 60_000, tags = {} }: PromiseOptions = {}) {
  return {
    id,
    timeoutAt,
    param: { data: "InBhcmFtIg==" },
    tags: {
      "resonate:scope": "global",
      "resonate:branch": id,
      ...(group && { "resonate:target": `poll://any@${group}` }),
      ...tags,
    },
  };
}

interface PromiseOptions {
  group?: string;
  timeoutAt?: number;
  tags?: Record<string, string>;
}

/** An operation in the envelope that it has inside another operation. */
export function action(kind: "promise.create" | "promise.settle" | "promise.register_callback", data: object) {
  return { kind, head: head(), data };
}
