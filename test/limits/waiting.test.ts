/** However many callers wait, and for how long, connections to the Resonate server are few, and workers keep theirs. */
import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { startAuthorizationServer } from "../auth/authorization-server.ts";
import { bearer, bearerBindings, callerAt } from "../auth/support.ts";
import { type Gate, startGate } from "../support/gate.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { rpc, rpcHeaders, rpcMessage } from "../support/rpc.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { subscribe } from "../tasks/support.ts";
import { JSON_HEADERS, send, call as toolCall } from "./support.ts";

let resonate: Resonate;
let gate: Gate;
beforeAll(async () => {
  resonate = await startResonate();
  gate = await startGate(resonate.url);
});
afterAll(async () => {
  await gate?.[Symbol.asyncDispose]();
  await resonate?.[Symbol.asyncDispose]();
});

const serve = (bindings: Record<string, string>, workers = 0) =>
  startStack({ resonate, workers, bindings: { RESONATE_URL: gate.url, ...bindings } });

interface Open {
  status: number;
  text(): string;
  ended: Promise<void>;
  leave(): void;
}

/** Sends a request and does not read its answer to the end. Resolves when the answer has begun. */
function open(url: string, body: object, headers: Record<string, string> = {}): Promise<Open> {
  return new Promise((resolve, reject) => {
    const req = request(url, { method: "POST", agent: false, headers: { ...JSON_HEADERS, ...headers } }, (res) => {
      let text = "";
      const ended = new Promise<void>((resolve) => res.on("close", resolve));
      res.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      res.on("error", () => {});
      resolve({ status: res.statusCode ?? 0, text: () => text, ended, leave: () => req.destroy() });
    });
    req.on("error", reject).end(JSON.stringify(body));
  });
}

const wait = (name: string) => toolCall("await_result", { job_names: [name], timeout_seconds: 300 });

/** Repeats a call until it succeeds, and returns its structured answer. A slow server's error says that this is safe. */
const done = ({ url }: Stack, body: object) =>
  until(
    "a call to be done",
    async () => (await send(url, { body })).messages.at(-1)?.result?.structuredContent,
    120_000,
  );

/** The whole answer to a call that waits for a job. */
async function told({ url }: Stack, name: string): Promise<string> {
  const waiting = await open(url, wait(name));
  expect(waiting.status).toBe(200);
  await waiting.ended;
  return waiting.text();
}

const set = async (stack: Stack, timer_name: string, seconds: number) =>
  (await done(stack, toolCall("set_timer", { timer_name, seconds }))).job_name;

test("1,010 waiting calls take one connection per edge; workers can still connect, and every call is answered", async () => {
  const options = { MAX_STREAMS: "0" };
  await using one = await serve(options);
  await using other = await serve(options);
  const named = await Promise.all([one, other].map((stack) => set(stack, "a year", 31_536_000)));
  const listeners = () => gate.calls.filter(({ kind }) => kind === "promise.register_listener").length;
  const answers: Promise<string>[] = [];
  const early: string[] = [];
  for (let n = 0; n < 1_010; n += 10) {
    const stack = n % 20 === 0 ? one : other;
    for (let i = 0; i < 10; i++) {
      const answer = told(stack, named[0]);
      answers.push(answer);
      answer.then(
        (text) => early.push(text.slice(-500)),
        () => undefined,
      );
    }
    // Waits until all of these listen before it sends more: an edge's speed depends on the machine.
    await until("them to listen", () => listeners() >= answers.length, 300_000);
  }
  // A lost connection is opened again.
  await until("both edges to be connected", () => gate.streams.open >= 2, 60_000);
  expect([gate.streams.open, early]).toEqual([2, []]);
  const worker = await one.addWorker();
  expect(await (await fetch(worker.process.healthUrl)).json()).toMatchObject({ status: "ok", connected: true });
  const soon = await set(one, "soon", 1);
  expect((await done(one, wait(soon))).results).toEqual({ [soon]: "complete" });
  const cancel = toolCall("cancel_job", { job_names: [...new Set(named)] });
  for (const stack of [one, other]) expect((await done(stack, cancel)).cancelled).toHaveLength(1);
  const others = (await Promise.all(answers)).filter((text) => !text.includes("cancelled:"));
  expect([...new Set(others)]).toEqual([]);
  await until("the connections to be closed", () => gate.streams.open === 0, 60_000);
}, 600_000);

describe("a caller", () => {
  const TOKENS = { ada: "static-token-of-ada", bob: "static-token-of-bob", cyd: "static-token-of-cyd" };
  let stack: Stack;
  let name: string;
  beforeAll(async () => {
    stack = await serve({ ...bearerBindings(TOKENS), MAX_STREAMS: "5" });
    const { result } = await rpc(
      stack.url,
      "tools/call",
      { name: "set_timer", arguments: { timer_name: "long", seconds: 3_600 } },
      { token: TOKENS.ada },
    );
    name = result.structuredContent.job_name;
  });
  afterAll(() => stack?.[Symbol.asyncDispose]());

  test("has one limit for streams of all kinds, and other callers have their own", async () => {
    const headers = bearer(TOKENS.ada);
    const task = await callerAt(stack.url, TOKENS.ada).tasks.call("timer", { timer_name: "long", seconds: 3_600 });
    const streams = await Promise.all(Array.from({ length: 4 }, () => open(stack.url, wait(name), headers)));
    const subscription = await subscribe(stack.url, [task.taskId], TOKENS.ada);
    const listen = { notifications: { taskIds: [task.taskId] } };
    for (const refused of [
      await open(stack.url, wait(name), headers),
      await open(stack.url, toolCall("timer", { timer_name: "long", seconds: 3_600 }), headers),
      await open(stack.url, rpcMessage("subscriptions/listen", listen), {
        ...headers,
        ...rpcHeaders("subscriptions/listen"),
      }),
    ]) {
      await refused.ended;
      expect([refused.status, JSON.parse(refused.text()).error]).toEqual([429, "too_many_streams"]);
    }
    // A call that is answered at once takes no stream.
    const looked = await send(stack.url, { headers, body: toolCall("probe_status", { job_names: [name] }) });
    expect(looked.status).toBe(200);
    const his = await open(stack.url, wait(name), bearer(TOKENS.bob));
    expect(his.status).toBe(200);
    for (const { leave } of streams) leave();
    subscription.leave();
    await until("the slots to be free again", async () => {
      const again = await open(stack.url, wait(name), headers);
      again.leave();
      return again.status === 200;
    });
  });

  test("has no more subscriptions than the limit when all come at once, and refused ones take no stream", async () => {
    const { taskId } = await callerAt(stack.url, TOKENS.cyd).tasks.call("timer", {
      timer_name: "long",
      seconds: 3_600,
    });
    const method = "subscriptions/listen";
    const headers = { ...bearer(TOKENS.cyd), ...rpcHeaders(method) };
    const listen = (...taskIds: string[]) =>
      open(stack.url, rpcMessage(method, { notifications: { taskIds } }), headers);
    const subscriptions = await Promise.all(Array.from({ length: 15 }, () => listen(taskId)));
    const statuses = subscriptions.map(({ status }) => status).sort();
    for (const { leave } of subscriptions) leave();
    expect(statuses).toEqual([...Array(5).fill(200), ...Array(10).fill(429)]);
    await until("the slots to be free again", async () => {
      const again = await listen(taskId);
      again.leave();
      return again.status === 200;
    });
    for (let n = 0; n < 10; n++) {
      const refused = await listen();
      await refused.ended;
      expect([refused.status, refused.text()]).toEqual([200, expect.stringContaining("taskIds, a list of 1 to")]);
    }
  });
});

test("a stream ends when the token that opened it expires, and a waiting call is answered before", async () => {
  await using server = await startAuthorizationServer(["ada"]);
  const audience = "https://mcp.example/mcp";
  const urls = { PUBLIC_URL: "https://mcp.example", OAUTH_AUDIENCE: audience };
  await using stack = await serve({ AUTH_MODE: "oauth", OAUTH_ISSUER: server.issuer, ...urls });
  const sign = (seconds: number) => {
    const iat = Math.floor(Date.now() / 1_000);
    return server.sign({ iss: server.issuer, aud: audience, sub: "ada", iat, exp: iat + seconds, scope: "mcp" });
  };
  const { taskId } = await callerAt(stack.url, await sign(60)).tasks.call("timer", { timer_name: "x", seconds: 3_600 });
  const short = await sign(3);
  await using subscription = await subscribe(stack.url, [taskId], short);
  const waiting = await open(stack.url, wait("timer_x"), bearer(short));
  await waiting.ended;
  expect(waiting.text()).toContain('"running":["timer_x"]');
  await subscription.ended;
});

test("a result that is too large for a notification is read from the server", async () => {
  await using stack = await serve({});
  const name = await set(stack, "large", 3_600);
  const before = gate.calls.length;
  const waiting = await open(stack.url, wait(name));
  await until("it to listen", () => gate.calls.slice(before).some(({ kind }) => kind === "promise.register_listener"));
  const value = { data: Buffer.from(JSON.stringify("x".repeat(300_000))).toString("base64") };
  await resonate.call("promise.settle", { id: stack.namespace + name, state: "resolved", value });
  await waiting.ended;
  expect(waiting.text()).toContain('"characters":300002');
});

test("an edge without a listener opens no connection, and polls with pauses", async () => {
  await using stack = await serve({ LISTENER: "" });
  const { opened } = gate.streams;
  const name = await set(stack, "looked at", 3_600);
  const waiting = await open(stack.url, wait(name));
  const looks = () => gate.calls.filter(({ kind, id }) => kind === "promise.get" && id === stack.namespace + name);
  await until("a look", () => looks().length >= 2);
  await resonate.call("promise.settle", { id: stack.namespace + name, state: "resolved", value: {} });
  await waiting.ended;
  expect(waiting.text()).toContain(`"results":{"${name}"`);
  expect(looks().length).toBeLessThan(10);
  expect(gate.streams.opened).toBe(opened);
});
