/**
 * A caller's limits, the origins from which browsers may call, and the edge's log of requests. Most tests share one edge, each
 * with its own callers.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestHarness } from "wrangler";
import { until } from "../../testing/stack/program.ts";
import type { Gate } from "../support/gate.ts";
import { rpc, rpcHeaders, rpcMessage } from "../support/rpc.ts";
import { type GatedStack, type Stack, startGatedStack, startStack } from "../support/stack.ts";
import { accept, TASK_PROGRAMS } from "../tasks/support.ts";
import { bearer, bearerBindings, callerAt, listTools } from "./support.ts";

const NAMES = ["ada", "bob", "carol", "dan", "eve", "fay"] as const;
const TOKENS = Object.fromEntries(NAMES.map((name) => [name, `static-token-of-${name}`])) as Record<
  (typeof NAMES)[number],
  string
>;
const ORIGINS = { CORS_ORIGINS: "https://a.example, https://b.example" };

let gate: Gate;
let stack: GatedStack;
beforeAll(async () => {
  const bindings = { ...bearerBindings(TOKENS), ...ORIGINS, MAX_JOBS: "3" };
  stack = await startGatedStack({ programs: TASK_PROGRAMS, workers: 0, bindings });
  gate = stack.gate;
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const serve = (bindings: Record<string, string>): Promise<Stack> =>
  startStack({ resonate: stack.resonate, workers: 0, bindings: { ...bearerBindings(TOKENS), ...bindings } });

test("a caller's requests per minute are limited, and the refusal says when to try again", async () => {
  await using stack = await serve({ RATE_LIMIT: "5", LOG_LEVEL: "warn" });
  const ask = () => listTools(stack.url, bearer(TOKENS.ada));
  for (let i = 0; i < 5; i++) expect((await ask()).status).toBe(200);
  const refused = await ask();
  expect(refused.status).toBe(429);
  const seconds = Number(refused.headers.get("retry-after"));
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeLessThanOrEqual(60);
  expect(await refused.json()).toMatchObject({
    error: "rate_limit_exceeded",
    error_description: expect.stringMatching(/may make 5 in 60 seconds. Try again in \d+ seconds/),
  });
  expect((await listTools(stack.url, bearer(TOKENS.bob))).status).toBe(200);
  expect((await listTools(stack.url)).status).toBe(401);
  // LOG_LEVEL is `warn`, so there are no lines of level `info`.
  expect(stack.edge.process.logs().filter(({ level }) => level === "info")).toEqual([]);
});

test("a caller's new jobs of one length are limited; existing jobs, other lengths and other callers are not", async () => {
  const [ada, bob] = [callerAt(stack.url, TOKENS.ada), callerAt(stack.url, TOKENS.bob)];
  const set = (name: string, seconds = 600) => ada.call("set_timer", { timer_name: name, seconds });
  const started = await Promise.allSettled(["a", "b", "c", "d", "e"].map((name) => set(name)));
  expect(started.filter(({ status }) => status === "fulfilled").length).toBe(3);
  await expect(set("f")).rejects.toThrow(
    /^Nothing was done: a caller may start 3 jobs that take up to an hour in an hour. Try again in \d+ minutes\.$/,
  );
  expect(await ada.call("get_timer_status", { timer_name: "f" })).toMatchObject({ status: "not_found" });
  await expect(ada.call("start_gathering", { latitude: 1, longitude: 1, year: 2013, month: 1 })).rejects.toThrow(
    "Nothing was done",
  );
  const there = ["a", "b", "c", "d", "e"].filter((_name, i) => started[i]?.status === "fulfilled");
  for (const name of there) expect(await set(name)).toMatchObject({ status: "running" });
  expect(await set("longer", 7_200)).toMatchObject({ status: "running" });
  expect(await bob.call("set_timer", { timer_name: "f", seconds: 600 })).toMatchObject({ status: "running" });
});

test("cancelling a shared month takes the edge few calls for each caller", async () => {
  const [carol, dan] = [callerAt(stack.url, TOKENS.carol), callerAt(stack.url, TOKENS.dan)];
  const { job_name } = await carol.call("start_gathering", { latitude: 2, longitude: 1, year: 2013, month: 1 });
  await dan.call("start_gathering", { latitude: 2, longitude: 1, year: 2013, month: 1 });
  const cancel = async (caller: typeof carol) => {
    const before = gate.calls.length;
    const outcome = await caller.call("cancel_job", { job_names: [job_name] });
    return { outcome, calls: gate.calls.length - before };
  };
  expect(await cancel(carol)).toMatchObject({ outcome: { given_up: [job_name] }, calls: 3 });
  expect(await cancel(dan)).toMatchObject({ outcome: { cancelled: [job_name] } });
});

/** The calls to the Resonate server for each of: a gathering, a timer, a look at a running job, and at a complete one. */
async function requestsOf(url: string): Promise<number[]> {
  const caller = callerAt(url, TOKENS.eve);
  const counts: number[] = [];
  await caller.call("set_timer", { timer_name: "complete", seconds: 600 });
  const { id = "" } =
    gate.calls.findLast(({ kind, id }) => kind === "promise.create" && id?.endsWith("timer_complete")) ?? {};
  await stack.resonate.call("promise.settle", { id, state: "resolved", value: {} });
  for (const [tool, args] of [
    ["start_gathering", { latitude: 1, longitude: 1, year: 2013, month: 2 }],
    ["set_timer", { timer_name: "cheap", seconds: 600 }],
    ["probe_status", { job_names: ["timer_cheap"] }],
    ["probe_status", { job_names: ["timer_complete"] }],
  ] as const) {
    const before = gate.calls.length;
    await caller.call(tool, args);
    counts.push(gate.calls.length - before);
  }
  return counts;
}

test("the edge makes one call to start a gathering, set a timer, or look at a running or a complete job", async () => {
  expect(await requestsOf(stack.url)).toEqual([1, 1, 1, 1]);
});

test("it makes one call without authentication, too; if no origin is listed, no page of another may call it", async () => {
  await using open = await serve({ AUTH_MODE: "none", RESONATE_URL: gate.url, ALLOWED_HOSTS: "" });
  expect(await requestsOf(open.url)).toEqual([1, 1, 1, 1]);
  const response = await preflight(open.url, "https://a.example");
  expect(response.headers.get("access-control-allow-origin")).toBeNull();
});

test("a request larger than the limit is refused, with the limit", async () => {
  const { status, error } = await rpc(
    stack.url,
    "tools/call",
    { name: "probe_status", arguments: { job_names: ["x".repeat(1_100_000)] } },
    { token: TOKENS.ada },
  );
  expect([status, error?.message]).toEqual([413, expect.stringContaining("1000000 bytes")]);
});

test("an answer to a question that is longer than the limit is refused, and the question stays open", async () => {
  await stack.addWorker();
  const { tasks } = callerAt(stack.url, TOKENS.fay);
  const { taskId } = await tasks.call("confirm_delete", { filename: "long" });
  const { inputRequests } = await tasks.reaches(taskId, "input_required");
  const [key = ""] = Object.keys(inputRequests);
  const answer = accept({ confirm: true, reason: "x".repeat(10_000) });
  await expect(tasks.update(taskId, { [key]: answer })).rejects.toThrow(/characters as JSON; up to 10000 are accepted/);
  expect((await tasks.get(taskId)).status).toBe("input_required");
});

const preflight = (url: string, origin: string) =>
  fetch(url, {
    method: "OPTIONS",
    headers: {
      origin,
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization,content-type,mcp-protocol-version,mcp-method,mcp-name",
    },
  });

test("a page in a browser may call the server only from the listed origins", async () => {
  const allowed = await preflight(stack.url, "https://b.example");
  expect(allowed.status).toBe(204);
  expect(allowed.headers.get("access-control-allow-origin")).toBe("https://b.example");
  expect(allowed.headers.get("access-control-allow-headers")).toContain("mcp-protocol-version");
  const call = await listTools(stack.url, { ...bearer(TOKENS.ada), origin: "https://a.example" });
  expect(call.status).toBe(200);
  expect(call.headers.get("access-control-allow-origin")).toBe("https://a.example");
  const refused = await listTools(stack.url, { origin: "https://a.example" });
  expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([401, "https://a.example"]);
  expect(refused.headers.get("access-control-expose-headers")).toContain("www-authenticate");

  const other = await preflight(stack.url, "https://c.example");
  expect(other.headers.get("access-control-allow-origin")).toBeNull();
  // On a local machine, a page of another origin is refused even if its browser would not let it read the answer.
  expect((await listTools(stack.url, { ...bearer(TOKENS.ada), origin: "https://c.example" })).status).toBe(403);
});

test("the log has one line per request, with the id of its job and without secrets", async () => {
  const before = stack.edge.process.logs().length;
  const dan = callerAt(stack.url, TOKENS.dan);
  await listTools(stack.url, bearer("a-wrong-token"));
  const { headers } = await listTools(stack.url, { ...bearer(TOKENS.dan), "cf-ray": "0123456789abcdef-SEA" });
  expect(headers.get("x-request-id")).toBe("0123456789abcdef-SEA");
  await dan.call("set_timer", { timer_name: "tea", seconds: 600 });
  await dan.call("await_result", { job_names: ["timer_tea", "timer_hush"], timeout_seconds: 1 });
  await dan.call("probe_status", { job_names: ["timer_hush"] });
  await expect(dan.call("hush", {})).rejects.toThrow("there is no tool");

  const lines = await until("six lines", () => {
    const requests = stack.edge.process
      .logs()
      .slice(before)
      .filter(({ msg }) => msg === "request");
    return requests.length >= 6 ? requests : undefined;
  });
  expect(lines).toMatchObject([
    { level: "info", status: 401 },
    { method: "tools/list", caller: "dan", status: 200, request_id: "0123456789abcdef-SEA" },
    { method: "tools/call", tool: "set_timer", caller: "dan", status: 200 },
    { method: "tools/call", tool: "await_result", caller: "dan", status: 200 },
    { method: "tools/call", tool: "probe_status", caller: "dan", status: 200 },
    { method: "tools/call", caller: "dan", status: 200 },
  ]);
  expect(lines[2]?.job).toMatch(/^c[\w-]{16}\.timer_tea$/);
  expect(lines[3]?.duration_ms).toBeGreaterThanOrEqual(900);
  for (const line of lines) expect(line.request_id).toMatch(/\S/);
  expect(stack.edge.process.output()).not.toMatch(/token-of|a-wrong-token|hush/);
});

test("Cloudflare's rate limiter decides if it is bound", async () => {
  const vars = { RESONATE_URL: "http://127.0.0.1:9", LOG_LEVEL: "silent", ...bearerBindings(TOKENS) };
  const server = createTestHarness({ workers: [{ configPath: "./wrangler.toml", vars }] });
  try {
    const url = new URL("/mcp", (await server.listen()).url).href;
    // A look at a hundred jobs counts as a hundred requests. No job can have these names, so no server is asked for it.
    const look = { name: "probe_status", arguments: { job_names: Array.from({ length: 100 }, (_, n) => `none ${n}`) } };
    const headers = { ...rpcHeaders("tools/call", look), ...bearer(TOKENS.ada) };
    const body = JSON.stringify(rpcMessage("tools/call", look, {}));
    const ask = () => fetch(url, { method: "POST", headers, body });
    let served = 0;
    let last = await ask();
    // A minute of the limiter may end during the loop, so more than one limit's worth of requests may be served.
    for (; last.status === 200 && served < 1_300; served += 100) last = await ask();
    expect(served).toBeGreaterThanOrEqual(600);
    expect([last.status, last.headers.get("retry-after")]).toEqual([429, "60"]);
    expect((await listTools(url, bearer(TOKENS.bob))).status).toBe(200);
  } finally {
    await server.close();
  }
});
