// The edge answers every request in time and without an internal failure, and starts no job for a request that it rejects.
// On a failure, fast-check prints the seed and the path that reproduce it.
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { currentClient } from "../support/clients.ts";
import { REVISION, rpc, rpcHeaders, rpcMessage } from "../support/rpc.ts";
import { anyJson, argumentsOf, envelope, headers, METHODS } from "./arbitraries.ts";
import { requests } from "./requests.ts";
import { type Reaction, startTarget, type Target, wasRejected } from "./target.ts";

/** Multiplies the number of runs: `FUZZ_TIMES=20`. */
const TIMES = Number(process.env.FUZZ_TIMES ?? 1);

vi.setConfig({ testTimeout: 60_000 * TIMES });

let target: Target;
let tools: { name: string; properties: string[] }[];
beforeAll(async () => {
  target = await startTarget();
  await using client = await currentClient.connect(target.stack.url);
  tools = (await client.listTools()).map(({ name, inputSchema }) => {
    return { name, properties: Object.keys((inputSchema as { properties: object }).properties) };
  });
});
afterAll(() => target?.[Symbol.asyncDispose]());

afterEach(async () => {
  const { edge, origin, url } = target.stack;
  expect((await fetch(`${origin}/health`)).status).toBe(200);
  expect((await rpc(url, "server/discover")).result.supportedVersions).toEqual([REVISION]);
  expect(edge.process.output()).toBe("");
});

const post = (body: string | Uint8Array<ArrayBuffer>, more: Record<string, string>) =>
  target.send("/mcp", { method: "POST", headers: more, body });
const call = (method: string, params: object) =>
  post(JSON.stringify(rpcMessage(method, params)), rpcHeaders(method, params));

const isRecord = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value);

function expectSound(reaction: Reaction): void {
  expect(reaction.status, reaction.text).toBeLessThan(500);
  expect(reaction.text).not.toContain("Something went wrong");
  for (const { error } of reaction.answers) expect(error?.code, reaction.text).not.toBe(-32603);
  if (wasRejected(reaction)) expect(reaction.started, reaction.text).toEqual([]);
}

const start = { name: "set_timer", arguments: { timer_name: "tea", seconds: 60 } };
const valid = JSON.stringify(rpcMessage("tools/call", start));
const validHeaders = rpcHeaders("tools/call", start);

test("any bytes, and a request with some bytes changed, removed or added", async () => {
  const bytes = new TextEncoder().encode(valid);
  const damaged = fc
    .tuple(fc.nat(bytes.length), fc.nat(20), fc.uint8Array({ maxLength: 20 }))
    .map(([at, lost, added]) => Uint8Array.from([...bytes.slice(0, at), ...added, ...bytes.slice(at + lost)]));
  const any = fc.oneof(fc.uint8Array({ maxLength: 300 }), damaged).map((body) => new Uint8Array(body));
  await fc.assert(
    fc.asyncProperty(any, async (body) => expectSound(await post(body, validHeaders))),
    { numRuns: 200 * TIMES },
  );
});

test("nesting that is too deep for a parser, and numbers that no double can hold", async () => {
  for (const deep of ["[", '{"a":', '{"jsonrpc":"2.0","params":['])
    expectSound(await post(deep.repeat(50_000), validHeaders));
  for (const number of ["1e999", "-1e999", `1${"0".repeat(5_000)}`, "-0", "1e-999", "00"]) {
    expectSound(await post(valid.replace("60", number), validHeaders));
    expectSound(await post(valid.replace('"id":1', `"id":${number}`), validHeaders));
  }
});

test("JSON-RPC envelopes, alone and in lists, of both revisions", async () => {
  const body = fc.oneof({ weight: 5, arbitrary: envelope }, fc.array(envelope, { maxLength: 3 }), anyJson);
  const revision = fc.constantFrom(REVISION, "2025-11-25", "2025-03-26", undefined);
  await fc.assert(
    fc.asyncProperty(body, revision, fc.boolean(), async (message, version, routed) => {
      const { method, params } = (message ?? {}) as { method?: unknown; params?: { name?: unknown } | null };
      const asked = typeof method === "string" && METHODS.includes(method) ? method : "tools/call";
      const { "mcp-protocol-version": _, ...sent } = rpcHeaders(asked, routed ? { name: params?.name } : {});
      const more = version === undefined ? sent : { ...sent, "mcp-protocol-version": version };
      expectSound(await post(JSON.stringify(message), more));
    }),
    { numRuns: 300 * TIMES },
  );
});

test("a plain request gets the same answer with and without the SDK", async () => {
  let plain = 0;
  await fc.assert(
    fc.asyncProperty(requests, async ({ message, headers }) => {
      fc.pre(isRecord(message.params));
      // A meaningless parameter that no plain request has makes the SDK answer.
      const foreign = { ...message, params: { ...message.params, nothing: null } };
      const [answer, bySdk] = [
        await post(JSON.stringify(message), headers),
        await post(JSON.stringify(foreign), headers),
      ];
      expect({ status: answer.status, answers: answer.answers }).toEqual({
        status: bySdk.status,
        answers: bySdk.answers,
      });
      if (answer.answers.some(({ result }) => result !== undefined)) plain += 1;
    }),
    { numRuns: 300 * TIMES },
  );
  expect(plain).toBeGreaterThan(60 * TIMES);
});

test("any headers of an otherwise valid request, with any method and path", async () => {
  const method = fc.oneof(
    { weight: 4, arbitrary: fc.constant("POST") },
    fc.constantFrom("GET", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD"),
  );
  const path = fc.oneof(
    { weight: 4, arbitrary: fc.constant("/mcp") },
    fc.constantFrom("/", "/mcp/", "/MCP", "/health", "/ready", "/%", "/mcp?x=%00", "//mcp", "/.well-known/x"),
    fc.webPath(),
  );
  await fc.assert(
    fc.asyncProperty(headers, fc.boolean(), method, path, async (some, added, method, path) => {
      const sent = added ? { ...validHeaders, ...some } : some;
      const body = method === "GET" || method === "HEAD" ? null : valid;
      expectSound(await target.send(path.startsWith("/") ? path : "/", { method, headers: sent, body }));
    }),
    { numRuns: 200 * TIMES },
  );
});

/** The arguments with a valid wait reduced to one second. */
function soon(args: Record<string, unknown>): Record<string, unknown> {
  const { timeout_seconds: wait } = args;
  const isWrong = wait != null && wait !== "" && !(Number(wait) >= 1 && Number(wait) <= 300);
  return "job_names" in args && !isWrong ? { ...args, timeout_seconds: 1 } : args;
}

test("any arguments for every tool", async () => {
  const calls = fc
    .constantFrom(...tools)
    .chain(({ name, properties }) =>
      fc.record({ name: fc.constant(name), arguments: argumentsOf(properties).map(soon) }),
    );
  let accepted = 0;
  await fc.assert(
    fc.asyncProperty(calls, async (params) => {
      const reaction = await call("tools/call", params);
      expectSound(reaction);
      expect(reaction.status).toBe(200);
      expect(reaction.answers[0]?.error).toBeUndefined();
      if (wasRejected(reaction)) expect(reaction.answers[0]?.result.content[0].text).not.toBe("");
      accepted += reaction.started.length;
    }),
    { numRuns: 1_400 * TIMES },
  );
  // Accepted calls do start jobs, so the check that rejected calls start none is meaningful.
  expect(accepted).toBeGreaterThan(20);
});

test("task ids, answers and subscriptions", async () => {
  const { result } = await rpc(target.stack.url, "tools/call", {
    name: "timer",
    arguments: { timer_name: "t", seconds: 3_600 },
  });
  const genuine: string = result.taskId;
  const spoilt = fc
    .tuple(fc.nat(genuine.length - 1), fc.string({ minLength: 1, maxLength: 3, unit: "grapheme-ascii" }), fc.nat(3))
    .map(([at, by, lost]) => genuine.slice(0, at) + by + genuine.slice(at + lost))
    .filter((id) => id !== genuine);
  const taskId = fc.oneof({ weight: 3, arbitrary: spoilt }, anyJson);
  const method = fc.constantFrom("tasks/get", "tasks/update", "tasks/cancel");
  const inputResponses = fc.oneof(fc.dictionary(fc.constantFrom("q1", "q2", "__proto__"), anyJson), anyJson);
  await fc.assert(
    fc.asyncProperty(method, taskId, inputResponses, async (method, taskId, inputResponses) => {
      const reaction = await call(method, { taskId, inputResponses });
      expectSound(reaction);
      expect(wasRejected(reaction)).toBe(true);
    }),
    { numRuns: 200 * TIMES },
  );
  const answered = fc.oneof(inputResponses, fc.constant({ q1: { action: "accept", content: { confirm: true } } }));
  await fc.assert(
    fc.asyncProperty(answered, async (inputResponses) =>
      expectSound(await call("tasks/update", { taskId: genuine, inputResponses })),
    ),
    { numRuns: 50 * TIMES },
  );
  const filter = fc.oneof(
    fc.record({ taskIds: fc.array(fc.oneof(spoilt, fc.constant(genuine), anyJson), { maxLength: 4 }) }),
    anyJson,
  );
  await fc.assert(
    fc.asyncProperty(filter, async (notifications) =>
      expectSound(await call("subscriptions/listen", { notifications })),
    ),
    { numRuns: 60 * TIMES },
  );
  expect((await rpc(target.stack.url, "tasks/get", { taskId: genuine })).result.status).toBe("working");
});
