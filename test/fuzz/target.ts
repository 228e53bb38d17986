/** An edge for random requests, and its reaction to each of them. */
import { feedEntryId, rootOf } from "../../core/resonate/ids.ts";
import { startGate } from "../support/gate.ts";
import { startResonate } from "../support/resonate.ts";
import { type Stack, startStack } from "../support/stack.ts";

export interface Target extends AsyncDisposable {
  readonly stack: Stack;
  /** Sends a request to `path` and reads the answer. Rejects if there is none within `REQUEST_TIMEOUT_MS`. */
  send(path: string, init: RequestInit): Promise<Reaction>;
}

export interface Reaction {
  status: number;
  text: string;
  /** The JSON-RPC answers in the response, streamed or not. */
  answers: Answer[];
  /**
   * The ids of new promises that the edge has created at the Resonate server, without the next entry of a task's progress
   * feed, which a subscription to the task creates.
   */
  started: string[];
}

export interface Answer {
  // oxlint-disable-next-line typescript/no-explicit-any -- results of any request
  result?: any;
  error?: { code: number; message: string };
}

/** The longest time for an answer, in milliseconds, even if the call itself waits for a second. */
const REQUEST_TIMEOUT_MS = 8_000;
/** The time for which a subscription is read, in milliseconds. */
const LISTEN = 300;

/** Starts an edge without workers, so that started jobs stay as they are, and watches the edge's requests to Resonate. */
export async function startTarget(): Promise<Target> {
  await using started = new AsyncDisposableStack();
  const resonate = started.use(await startResonate({ own: true }));
  const gate = started.use(await startGate(resonate.url));
  const through = { ...resonate, env: { ...resonate.env, RESONATE_URL: gate.url } };
  const stack = started.use(await startStack({ resonate: through, workers: 0, bindings: { LOG_LEVEL: "warn" } }));
  const known = new Set<string | undefined>();
  const all = started.move();
  return {
    stack,
    async send(path, init) {
      const before = gate.calls.length;
      const response = await fetch(stack.origin + path, {
        ...init,
        redirect: "manual",
        signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      });
      const subscribes = String(init.body ?? "").includes("subscriptions/listen");
      const text = await read(response, subscribes);
      const ids = gate.calls.slice(before).flatMap(({ kind, id = "" }) => (kind === "promise.create" ? id : []));
      const news = ids.filter(
        (id) => !(subscribes && id === feedEntryId(rootOf(id), 1)) && !known.has(id) && known.add(id),
      );
      return { status: response.status, text, answers: answersIn(text), started: news };
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** The body of a response. Of a subscription's stream, only the first `LISTEN` milliseconds are read. */
async function read(response: Response, subscribes: boolean): Promise<string> {
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
  if (!subscribes || !isStream || !response.body) return response.text();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const enough = setTimeout(() => void reader.cancel(), LISTEN);
  let text = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) text += part.value;
  clearTimeout(enough);
  return text;
}

function answersIn(text: string): Answer[] {
  const lines = text.startsWith("event:") || text.startsWith(":") ? text.split("\n") : [`data: ${text}`];
  return lines.flatMap((line) => {
    if (!line.startsWith("data: ")) return [];
    try {
      const message = JSON.parse(line.slice(6));
      return (Array.isArray(message) ? message : [message]).filter((each) => "result" in each || "error" in each);
    } catch {
      return [];
    }
  });
}

/** Whether the request was rejected, with an HTTP error, a JSON-RPC error or a tool's error, so that nothing was done. */
export function wasRejected({ status, answers }: Reaction): boolean {
  return status >= 400 || answers.every(({ error, result }) => error !== undefined || result?.isError === true);
}
