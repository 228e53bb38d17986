import { get } from "node:http";
import { Codec } from "@resonatehq/sdk";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { CLIENTS, currentClient, type McpClient } from "../support/clients.ts";
import type { Gate } from "../support/gate.ts";
import { rpcHeaders, rpcMessage } from "../support/rpc.ts";
import { type GatedStack, type Stack, startGatedStack, startStack } from "../support/stack.ts";

/** A proxy between the edge and the Resonate server that counts calls and connections. */
let gate: Gate;
/** Without workers: jobs settle when a test settles them. */
let stack: GatedStack;
beforeAll(async () => {
  stack = await startGatedStack({ workers: 0 });
  gate = stack.gate;
});
afterAll(() => stack?.[Symbol.asyncDispose]());

let timers = 0;
/** Sets timers that nobody lets fire, and returns their job names. */
async function pendingJobs(client: McpClient, count: number): Promise<string[]> {
  const names = Array.from({ length: count }, () => `t${++timers}`);
  const set = names.map((timer_name) => client.callTool("set_timer", { timer_name, seconds: 3_600 }));
  return (await Promise.all(set)).map(({ content }) => content.promise_id);
}

const settle = (name: string, value: unknown = `result of ${name}`, server: Stack = stack) =>
  server.resonate.call("promise.settle", {
    id: server.namespace + name,
    state: value instanceof Error ? "rejected" : "resolved",
    value: new Codec().encode(value),
  });

/** How many calls about these jobs reached the Resonate server, by kind. */
const callsAbout = (names: string[]) => {
  const ids = new Set(names.map((name) => stack.namespace + name));
  const calls = gate.calls.filter(({ id }) => id !== undefined && ids.has(id));
  const byKind = Object.entries(Object.groupBy(calls, ({ kind }) => kind));
  return Object.fromEntries(byKind.map(([kind, list = []]) => [kind, list.length]));
};

const listening = (names: string[]) =>
  until("the edge to listen to all of the jobs", () => {
    return (callsAbout(names)["promise.register_listener"] ?? 0) >= names.length;
  });

const results = (names: string[]) => Object.fromEntries(names.map((name) => [name, `result of ${name}`]));

describe.each(CLIENTS)("await_result, $kind", ({ connect }) => {
  let client: McpClient;
  beforeAll(async () => {
    client = await connect(stack.url);
  });
  afterAll(() => client?.close());
  afterEach(() => {
    gate.refuseStreams(false);
    gate.holdStreams(false);
  });

  test("is notified of settlements over one connection, with one listener per job and without polling", async () => {
    const names = await pendingJobs(client, 50);
    await until("earlier connections to be closed", () => gate.streams.open === 0);
    const { opened } = gate.streams;
    const answer = client.callTool("await_result", { job_names: names });
    await listening(names);
    // The edge may have read the jobs while the connection opened. From here on it must not read any.
    const { "promise.get": reads = 0, ...listened } = callsAbout(names);
    expect(listened).toEqual({ "promise.create": 50, "promise.register_listener": 50 });
    await Promise.all(names.map((name) => settle(name)));
    expect((await answer).content).toEqual({ results: results(names), errors: {}, running: [] });
    expect(gate.streams.opened - opened).toBe(1);
    expect(callsAbout(names)).toEqual({ ...listened, ...(reads > 0 && { "promise.get": reads }) });
    await until("the connection to be closed", () => gate.streams.open === 0);
  });

  test("reports progress as jobs settle, if asked to", async () => {
    const names = await pendingJobs(client, 4);
    const reports: { progress: number; total?: number | undefined; message?: string | undefined }[] = [];
    const onprogress = (report: (typeof reports)[number]) => reports.push(report);
    const answer = client.callTool("await_result", { job_names: names }, { onprogress });
    await listening(names);
    for (const [i, name] of names.entries()) {
      await settle(name, i === 1 ? new Error("no tea") : undefined);
      const message = `${i + 1} of 4 jobs settled`;
      const isReported = () => reports.some((report) => report.message === message);
      if (i < 3) await until(`the report of ${message}`, isReported, 4_000);
    }
    const { content } = await answer;
    expect(content.errors).toEqual({ [names[1] ?? ""]: "failed: no tea" });
    expect(reports.length).toBeGreaterThanOrEqual(3);
    const progress = reports.map((report) => report.progress);
    expect(progress).toEqual([...new Set(progress)].sort((a, b) => a - b)); // each greater than the one before
    expect(reports.every(({ progress, total = 0 }) => total === 4 && progress <= total)).toBe(true);
  });

  test("returns the results that it has at its timeout, and names the jobs that still run", async () => {
    const names = await pendingJobs(client, 3);
    const [settled = "", ...running] = names;
    await settle(settled);
    const { content } = await client.callTool("await_result", { job_names: names, timeout_seconds: 1 });
    expect(content).toEqual({ results: results([settled]), errors: {}, running });
    await until("the connection to be closed", () => gate.streams.open === 0);
  });

  test("returns at once for jobs that are settled already or were never started", async () => {
    const names = await pendingJobs(client, 3);
    await Promise.all(names.map((name) => settle(name)));
    const { content } = await client.callTool("await_result", { job_names: [...names, "timer_never", "order-1"] });
    expect([content.results, Object.keys(content.errors).sort()]).toEqual([results(names), ["order-1", "timer_never"]]);
  });

  test("stops when its client goes away", async () => {
    const names = await pendingJobs(client, 3);
    const leaving = await connect(stack.url);
    leaving.callTool("await_result", { job_names: names, timeout_seconds: 300 }).catch(() => {});
    await listening(names);
    expect(gate.streams.open).toBe(1);
    await leaving.close();
    await until("the edge to close its connection", () => gate.streams.open === 0, 20_000);
  });

  test("continues over a new connection when its connection is lost", async () => {
    const names = await pendingJobs(client, 3);
    const [before = "", during = "", after = ""] = names;
    const answer = client.callTool("await_result", { job_names: names });
    await listening(names);
    await settle(before);
    const { opened } = gate.streams;
    gate.refuseStreams(true);
    gate.cutStreams();
    await settle(during); // no connection is there to report it
    await until("it to be read", () => callsAbout([during])["promise.get"] !== undefined);
    gate.refuseStreams(false);
    await until("a new connection", () => gate.streams.opened > opened);
    await settle(after);
    expect((await answer).content).toEqual({ results: results(names), errors: {}, running: [] });
  });

  test("returns the result of an ended job even when the connection never opens", async () => {
    const names = await pendingJobs(client, 1);
    await Promise.all(names.map((name) => settle(name)));
    gate.holdStreams(true);
    const { content } = await client.callTool("await_result", { job_names: names, timeout_seconds: 5 });
    expect(content).toEqual({ results: results(names), errors: {}, running: [] });
  });

  test("polls with pauses when connections are refused", async () => {
    const names = await pendingJobs(client, 3);
    await until("no connection", () => gate.streams.open === 0);
    const { opened } = gate.streams;
    gate.refuseStreams(true);
    const answer = client.callTool("await_result", { job_names: names });
    await until("the jobs to be read twice", () => (callsAbout(names)["promise.get"] ?? 0) >= 6);
    await Promise.all(names.map((name) => settle(name)));
    expect((await answer).content).toEqual({ results: results(names), errors: {}, running: [] });
    expect(gate.streams.opened).toBe(opened);
  });
});

test.concurrent("a connection that dies silently is noticed, and the waiting call still gets its result", async () => {
  await using apart = await startGatedStack({ workers: 0 });
  const { gate } = apart;
  await using client = await currentClient.connect(apart.url);
  const [name = ""] = await pendingJobs(client, 1);
  const answer = client.callTool("await_result", { job_names: [name], timeout_seconds: 55 });
  await until("the edge to listen", () => gate.calls.some(({ kind }) => kind === "promise.register_listener"));
  gate.freezeStreams();
  await settle(name, `result of ${name}`, apart);
  expect((await answer).content).toEqual({ results: results([name]), errors: {}, running: [] });
});

/** Names in a request's `_meta` that leave the request to the SDK. */
const FOR_SDK = { "io.modelcontextprotocol/odd": true };

test.each([
  ["2025-11-25", {}],
  ["2025-11-25", FOR_SDK],
  ["2026-07-28", {}],
  ["2026-07-28", FOR_SDK],
])(
  "a call of %s (%j) is cancelled by a notification of its own session alone, which 2026 has none of, and its job goes on",
  async (revision, more) => {
    const client = await currentClient.connect(stack.url);
    const [job = ""] = await pendingJobs(client, 1);
    const id = "one";
    const post = (message: { id?: string; method: string; params: object }, session?: string) => {
      const { _meta, ...plain } = message.params as { _meta?: object };
      const isPlain = revision < "2026";
      const meta = { ...more, ...(!isPlain && _meta), ...(message.method === "tools/call" && { progressToken: id }) };
      const ofSession = session !== undefined && { "mcp-session-id": session };
      const headers = { ...rpcHeaders(message.method, plain), "mcp-protocol-version": revision, ...ofSession };
      const body = JSON.stringify({ ...message, params: { ...plain, _meta: meta } });
      return fetch(stack.url, { method: "POST", headers, body });
    };
    const args = { job_names: [job], timeout_seconds: 120 };
    const call = rpcMessage("tools/call", { name: "await_result", arguments: args });
    // A session of before a restart of the edge is as good as any other.
    const sessions = ["a", "b", undefined].map(
      (of) => of && `${of} ${revision} ${JSON.stringify(more)}`.replaceAll(" ", "-"),
    );
    const calls = await Promise.all(sessions.map((session) => post({ ...call, id }, session)));
    for (const { headers } of calls) expect(headers.get("content-type")).toContain("text/event-stream");
    const bodies = calls.map((response) => response.text());
    await listening([job]);
    const { id: _, ...notification } = rpcMessage("notifications/cancelled", { requestId: id });
    for (const session of [sessions[0], undefined]) expect((await post(notification, session)).status).toBe(202);
    const isOf2026 = revision > "2026";
    if (!isOf2026) expect(await bodies[0]).not.toMatch(/"(result|error)":/);
    const { content } = await client.callTool("probe_status", { job_names: [job] });
    expect(content.statuses).toMatchObject([{ status: "running" }]);
    await settle(job, "the result");
    for (const body of isOf2026 ? bodies : bodies.slice(1)) expect(await body).toContain("the result");
    await client.close();
  },
  30_000,
);

test("many waits at once are each answered with their own jobs", async () => {
  const clients = await Promise.all(CLIENTS.map(({ connect }) => connect(stack.url)));
  const names = await pendingJobs(clients[0] as McpClient, 50);
  const waits = names.flatMap((name) => clients.map((client) => client.callTool("await_result", { job_names: name })));
  await until("all to wait", () => (callsAbout(names)["promise.register_listener"] ?? 0) >= 100);
  // One connection for all waits.
  expect(gate.streams.open).toBe(1);
  await Promise.all(names.map((name) => settle(name)));
  const answers = await Promise.all(waits);
  expect(answers.map(({ content }) => content.results)).toEqual(
    names.flatMap((name) => [results([name]), results([name])]),
  );
  await Promise.all(clients.map((client) => client.close()));
});

test("stops when the call is given up", async () => {
  await using client = await currentClient.connect(stack.url);
  const names = await pendingJobs(client, 1);
  const given = new AbortController();
  const answer = client.callTool("await_result", { job_names: names, timeout_seconds: 300 }, { signal: given.signal });
  await listening(names);
  given.abort();
  await expect(answer).rejects.toThrow();
  await until("the edge to close its connection", () => gate.streams.open === 0, 20_000);
});

test.concurrent("a caller that asked for progress hears of it even while nothing happens; other callers do not", async () => {
  await using client = await currentClient.connect(stack.url);
  const [name = "", silent = ""] = await pendingJobs(client, 2);
  const answer = fetch(stack.url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "await_result", arguments: { job_names: [silent] } },
    }),
  });
  const reports: { progress: number; total?: number | undefined; message?: string | undefined }[] = [];
  const onprogress = (report: (typeof reports)[number]) => reports.push(report);
  const reported = client.callTool("await_result", { job_names: [name] }, { onprogress });
  await until("two reports", () => reports.length > 1);
  // Progress counts the timer's own seconds, not the part of this wait that has passed.
  const [first, second] = reports;
  expect(first?.total).toBeGreaterThan(60);
  expect(second).toMatchObject({ total: first?.total, message: expect.stringContaining(`${name}: running, due at `) });
  expect(second?.progress).toBeGreaterThan(first?.progress ?? Number.NaN);
  expect(second?.progress).toBeLessThan(60);
  await Promise.all([settle(name), settle(silent)]);
  expect((await reported).content.results).toEqual(results([name]));
  const { headers } = await answer;
  const told = ["content-type", "cache-control", "x-accel-buffering"].map((header) => headers.get(header));
  expect(told).toEqual(["text/event-stream", "no-cache, no-transform", "no"]);
  const text = await (await answer).text();
  expect(text).toContain(`result of ${silent}`);
  expect(text).not.toContain("notifications/progress");
});

test.concurrent("a wait gets its results even when the server has no free connection", async () => {
  await using full = await startStack({ own: true, apart: true, workers: 0 });
  const streams = Array.from({ length: 1_001 }, (_, i) => {
    const opened = Promise.withResolvers<number>();
    get(`${full.resonate.url}/poll/others/${i}`, { agent: false }, (res) => {
      opened.resolve(res.statusCode ?? 0);
      res.on("error", () => {}).resume();
    }).on("error", () => {});
    return opened.promise;
  });
  expect((await Promise.all(streams)).toSorted().slice(-2)).toEqual([200, 503]);
  await using client = await currentClient.connect(full.url);
  const [early = "", late = ""] = await pendingJobs(client, 2);
  await settle(early, "early", full);
  const reading = Promise.withResolvers<void>();
  const options = { onprogress: () => reading.resolve() };
  const answer = client.callTool("await_result", { job_names: [early, late] }, options);
  await reading.promise;
  await settle(late, "late", full);
  expect((await answer).content).toEqual({ results: { [early]: "early", [late]: "late" }, errors: {}, running: [] });
});
