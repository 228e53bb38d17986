/**
 * The floor: what any server in front of Resonate costs. A bare Hono app that makes the calls it is given to the Resonate
 * server and answers. What the product does beyond that is MCP.
 */
import { Hono } from "hono";

const app = new Hono<{ Bindings: { RESONATE_URL: string; RESONATE_TOKEN?: string } }>();

/**
 * The body is the calls, a line each. The answer to a single call is passed through; after none or several, all read
 * to their end, `x-answer-bytes` bytes are answered. With `x-poll` an event stream is opened first, as to wait on; with
 * `x-hold` it is the answer.
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
  if (stream && c.req.header("x-hold") !== undefined) return stream;
  await stream?.body?.cancel();
  return c.body(answerOf(Number(c.req.header("x-answer-bytes"))), 200, { "content-type": "application/json" });
});

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
