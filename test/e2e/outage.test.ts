import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ResonateClient } from "../../core/resonate/connection/client.ts";
import { serveHttp } from "../../testing/stack/http-server.ts";
import { until } from "../../testing/stack/program.ts";
import { CLIENTS, currentClient, type McpClient, type ToolResult } from "../support/clients.ts";
import { startGate } from "../support/gate.ts";
import { monthsOfItsOwn } from "../support/months.ts";
import { type Stack, type StackPart, startStack } from "../support/stack.ts";

let data: string;
let stack: Stack;
let server: StackPart;
let clients: McpClient[];
beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), "resonate-"));
  stack = await startStack({ own: { data }, apart: true });
  server = stack.server ?? expect.fail("the stack has a server of its own");
  clients = await Promise.all(CLIENTS.map(({ connect }) => connect(stack.url)));
});
afterAll(async () => {
  await Promise.all(clients?.map((client) => client.close()) ?? []);
  await stack?.[Symbol.asyncDispose]();
  if (data) await rm(data, { recursive: true });
});

const nextMonth = monthsOfItsOwn();
const ready = async () => {
  const response = await fetch(`${stack.origin}/ready`);
  return [response.status, await response.json()];
};

/** Does the same with each client at once, so that they share an outage. */
const withEach = (work: (client: McpClient, tag: string) => Promise<void>) =>
  Promise.all(clients.map((client, i) => work(client, String(i))));

test("during an outage each call fails with an error that says a retry is safe, and afterwards each works", async () => {
  const months = clients.map(nextMonth);
  /** Calls of every tool, each of which needs the server. */
  const calls = (tag: string): [string, object][] => [
    ["start_gathering", months[Number(tag)]?.args ?? {}],
    ["weather_data", months[Number(tag)]?.args ?? {}],
    ["set_timer", { timer_name: `during ${tag}`, seconds: 3_600 }],
    ["timer", { timer_name: `short ${tag}`, seconds: 1 }],
    ["get_timer_status", { timer_name: `before ${tag}` }],
    ["probe_status", { job_names: `timer_before ${tag}` }],
    ["await_result", { job_names: `timer_before ${tag}`, timeout_seconds: 1 }],
    ["cancel_job", { job_names: `timer_unheard of ${tag}` }],
  ];
  await withEach(async (client, tag) => {
    await client.callTool("set_timer", { timer_name: `before ${tag}`, seconds: 3_600 });
  });

  await server.end();
  await withEach(async (client, tag) => {
    for (const [tool, args] of calls(tag)) {
      const { isError, text } = await client.callTool(tool, args);
      const said = expect.stringMatching(/Resonate server.* is unavailable: .+ Repeat the same call.* safe/);
      expect([tool, isError, text]).toEqual([tool, true, said]);
    }
    expect((await client.listTools()).length).toBeGreaterThan(4);
  });
  expect(await ready()).toEqual([503, { status: "unavailable", reason: expect.stringContaining("Resonate") }]);
  expect((await fetch(`${stack.origin}/health`)).status).toBe(200);
  for (const { connect } of CLIENTS) {
    await using newcomer = await connect(stack.url); // a client can connect to the edge without the server
    expect(newcomer.instructions).toContain("Resonate");
  }
  expect(stack.archive.control.requests.total).toBe(0);

  await server.start();
  // `/ready` repeats its last finding for a moment.
  await until("the edge to be ready", async () => (await fetch(`${stack.origin}/ready`)).ok);
  await withEach(async (client, tag) => {
    const results = [];
    for (const [tool, args] of calls(tag)) results.push(await client.callTool(tool, args));
    const job_name = months[Number(tag)]?.job;
    expect(results.filter(({ isError }) => isError)).toEqual([]);
    expect(results.map(({ content }) => content)).toMatchObject([
      { job_name, status: "running" }, // no call before has started it
      { job_name, status: "complete" },
      { status: "running" },
      { status: "complete" },
      { status: "running" },
      { statuses: [{ status: "running" }] },
      { running: [`timer_before ${tag}`] },
      { not_found: [`timer_unheard of ${tag}`] },
    ]);
    expect(results[2]?.content).not.toHaveProperty("note");
  });
  expect(months.map(({ archived }) => stack.archive.control.count(archived))).toEqual([1, 1]);
});

test("a wait continues through an outage, and one that times out during it says why it has no results", async () => {
  /** Starts a wait, and returns once it has reported the finished job `done`: then it has reached the server. */
  const wait = async (client: McpClient, done: string, name: string, timeout_seconds: number) => {
    const waiting = Promise.withResolvers<void>();
    const args = { job_names: [done, name], timeout_seconds };
    const answer = client.callTool("await_result", args, { onprogress: () => waiting.resolve() });
    await waiting.promise;
    return { answer };
  };
  const waits: { long: Promise<ToolResult>; short: Promise<ToolResult> }[] = [];
  await withEach(async (client, tag) => {
    const { content: done } = await client.callTool("timer", { timer_name: `done ${tag}`, seconds: 1 });
    const { content: timer } = await client.callTool("set_timer", { timer_name: `awaited ${tag}`, seconds: 5 });
    const { content: other } = await client.callTool("set_timer", { timer_name: `other ${tag}`, seconds: 3_600 });
    const [long, short] = await Promise.all([
      wait(client, done.job_name, timer.promise_id, 45),
      wait(client, done.job_name, other.promise_id, 4),
    ]);
    waits[Number(tag)] = { long: long.answer, short: short.answer };
  });

  await server.end();
  for (const { short } of waits) {
    expect(await short).toMatchObject({ isError: true, text: expect.stringMatching(/unavailable: .* safe/) });
  }
  await server.start();
  for (const [tag, { long }] of waits.entries()) {
    const { isError, content } = await long;
    expect([isError, content]).toEqual([
      false,
      { results: { [`timer_done ${tag}`]: "complete", [`timer_awaited ${tag}`]: "complete" }, errors: {}, running: [] },
    ]);
  }
});

test("a server that accepts calls but does not answer is soon reported as unavailable", async () => {
  await using gate = await startGate(stack.resonate.url);
  const bindings = { RESONATE_URL: gate.url };
  await using held = await startStack({ resonate: stack.resonate, workers: 0, bindings });
  await using client = await currentClient.connect(held.url);
  for (const kind of ["promise.create", "promise.get"]) void gate.hold(kind);
  // As when the server's database is down. A plain client waits ten seconds for an answer.
  const other = new ResonateClient({ url: gate.url, token: process.env.RESONATE_TOKEN });
  const patient = other.call({ kind: "promise.get", data: { id: "any" } }).then(
    () => "answered",
    () => "the other client",
  );
  for (const [tool, args] of [
    ["set_timer", { timer_name: "held back", seconds: 3_600 }],
    ["probe_status", { job_names: "timer_held back" }],
  ] as const) {
    const call = client.callTool(tool, args);
    if (tool === "set_timer") expect(await Promise.race([patient, call.then(() => tool)])).toBe(tool);
    const { isError, text } = await call;
    const said = expect.stringMatching(
      /unavailable: it did not answer in time\. .*Repeat the same call later: that is safe/,
    );
    expect([tool, isError, text]).toEqual([tool, true, said]);
  }
});

test("a server that refuses the deployment's token is not reported as unavailable: a retry would not help", async () => {
  await using refusing = await serveHttp((_req, res) => res.writeHead(401).end("Unauthorized"));
  const bindings = { RESONATE_URL: refusing.url };
  await using refused = await startStack({ resonate: stack.resonate, workers: 0, bindings });
  await using client = await currentClient.connect(refused.url);
  for (const [tool, args] of [
    ["probe_status", { job_names: "timer_tea" }],
    ["await_result", { job_names: "timer_tea", timeout_seconds: 60 }],
  ] as const) {
    const { isError, text } = await client.callTool(tool, args);
    expect([tool, isError, text]).toEqual([tool, true, expect.stringMatching(/refused this deployment's token/)]);
    expect(text).toMatch(/Repeating it does not help/);
    expect(text).not.toMatch(/unavailable|safe/);
  }
});
