/**
 * The floor: the cost of any server in front of Resonate. It is a bare Hono app that forwards given calls to the Resonate server
 * and answers. The product adds MCP to that.
 */
import { Hono } from "hono";

const app = new Hono<{ Bindings: { RESONATE_URL: string; RESONATE_TOKEN?: string } }>();

/**
 * The body has one call per line. The answer to a single call is passed through. The answers to several calls are read to their
 * end, and the response has `x-answer-bytes` bytes. With `x-poll` an event stream is opened first. With `x-hold` the response is
 * an event stream, which passes the server's stream on and ends with it.
 */
app.post("/", async (c) => {
  const url = c.env.RESONATE_URL;
  const post = (body: BodyInit | null) =>
    fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  const count = Number(c.req.header("x-calls"));
  const poll = c.req.header("x-poll") !== undefined;
  if (count === 1 && !poll) return post(c.req.raw.body);

  const stream = poll ? await fetch(`${url}/poll/floor/${crypto.randomUUID()}`, eventStream(c.env)) : undefined;
  const calls = count > 0 ? (await c.req.text()).split("\n") : [];
  await Promise.all(calls.map(async (call) => (await post(call)).text()));
  if (stream?.body && c.req.header("x-hold") !== undefined) return new Response(held(stream.body));
  await stream?.body?.cancel();
  return c.body(answerOf(Number(c.req.header("x-answer-bytes"))), 200, { "content-type": "application/json" });
});

/** Reads one stream and writes another, as the product must, whose MCP clients get other messages than Resonate pushes. */
function held(pushed: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = pushed.getReader();
  return new ReadableStream({
    async start(controller) {
      controller.enqueue(new TextEncoder().encode(": \n\n"));
      while (!(await reader.read()).done);
      controller.close();
    },
    cancel: () => reader.cancel(),
  });
}

const answers = new Map<number, string>();

function answerOf(bytes: number): string {
  const answer = answers.get(bytes) ?? "x".repeat(bytes);
  answers.set(bytes, answer);
  return answer;
}

function eventStream({ RESONATE_TOKEN }: { RESONATE_TOKEN?: string }): RequestInit {
  const authorization = RESONATE_TOKEN && { authorization: `Bearer ${RESONATE_TOKEN}` };
  return { headers: { accept: "text/event-stream", ...authorization } };
}

export default app;

/** The shared configuration binds this class; it is unused here. */
export class Listener {}
export class CallerObject {}
export class ResonateObject {}
export class RunnerObject {}
