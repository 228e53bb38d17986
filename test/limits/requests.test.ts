/** The requests of a caller, however many and however large, are counted, bounded and logged, and disturb nobody else. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { pause } from "../../core/resonate/pacing/backoff.ts";
import { until } from "../../testing/stack/program.ts";
import { bearerBindings } from "../auth/support.ts";
import { type Gate, startGate } from "../support/gate.ts";
import { REVISION, rpc, rpcHeaders, rpcMessage } from "../support/rpc.ts";
import { type GatedStack, type Stack, startGatedStack, startStack } from "../support/stack.ts";
import { call, JSON_HEADERS, names, send } from "./support.ts";

let gate: Gate;
/** An edge without a rate limit, behind which a gate counts the calls to the Resonate server. */
let stack: GatedStack;
beforeAll(async () => {
  stack = await startGatedStack({ workers: 0 });
  gate = stack.gate;
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const serve = (bindings: Record<string, string>) =>
  startStack({ resonate: stack.resonate, workers: 0, bindings: { RESONATE_URL: gate.url, ...bindings } });

const probe = (count: number) => call("probe_status", { job_names: names(count) });
/** Like `probe`, with names that no job can have: the edge answers without a call to the Resonate server. */
const probeNothing = (count: number) => call("probe_status", { job_names: names(count).map((name) => `no_${name}`) });
const linesOf = (of: Stack) => of.edge.process.logs().filter(({ msg }) => msg === "request");

describe("a list of messages", () => {
  test.each([undefined, "2025-03-26", "2025-06-18", "2025-11-25", REVISION])(
    "is refused whatever it holds and however long it is (revision %s)",
    async (revision) => {
      const before = gate.calls.length;
      const headers = revision === undefined ? {} : { "mcp-protocol-version": revision };
      const timer = call("set_timer", { timer_name: "listed", seconds: 600 });
      for (const body of [[], [probe(1)], [timer, probe(1)], Array.from({ length: 100 }, () => probe(100)), [1, {}]]) {
        const { status, messages } = await send(stack.url, { headers, body });
        expect([status, messages[0].error.code, messages[0].id]).toEqual([400, -32600, null]);
        expect(messages[0].error.message).toContain("Requests are sent one at a time");
      }
      expect(gate.calls.length).toBe(before);
    },
  );

  test("counts as one request and has one line in the log", async () => {
    await using limited = await serve({ RATE_LIMIT: "3" });
    const body = Array.from({ length: 15 }, () => probe(1));
    const statuses = [];
    for (let n = 0; n < 4; n++) statuses.push((await send(limited.url, { body })).status);
    expect(statuses).toEqual([400, 400, 400, 429]);
    const lines = await until("four lines", () => (linesOf(limited).length === 4 ? linesOf(limited) : undefined));
    expect(lines.map(({ method, tool, status }) => [method, tool, status])).toEqual(
      statuses.map((status) => [undefined, undefined, status]),
    );
  });
});

describe("the limit", () => {
  const limited = async (bindings: Record<string, string>, steps: (stack: Stack) => Promise<void>) => {
    await using stack = await serve(bindings);
    await steps(stack);
  };

  test("counts the jobs that a call touches: a look at a hundred jobs counts as a hundred", () =>
    limited({ RATE_LIMIT: "150" }, async ({ url }) => {
      expect((await send(url, { body: probe(100) })).status).toBe(200);
      const refused = await send(url, { body: probe(100) });
      expect([refused.status, JSON.parse(refused.text).error_description]).toEqual([
        429,
        expect.stringContaining("counts as 100"),
      ]);
      expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
      // A refused call counts as one, not as the jobs it names.
      expect((await send(url, { body: probe(40) })).status).toBe(200);
    }));

  test("tells a client whose request exceeds the whole limit how much it may ask for, and not to retry", () => {
    const bindings = { RATE_LIMIT: "60", WAIT_SECONDS: "1", ...bearerBindings({ ada: "static-token-of-ada" }) };
    const headers = { authorization: "Bearer static-token-of-ada" };
    return limited(bindings, async ({ url }) => {
      const words =
        /counts as 100, .* may make 60 in 60 seconds. Trying again does not help. Ask for at most 60 at once/;
      const refused = await send(url, { headers, body: probe(100) });
      expect([refused.status, refused.headers["retry-after"]]).toEqual([429, undefined]);
      expect(JSON.parse(refused.text).error_description).toMatch(words);
      const range = async (to: string) => {
        const where = { latitude: 5, longitude: 1, confirm: true };
        const { messages } = await send(url, {
          headers,
          body: call("weather_range", { ...where, from: "2000-01", to }),
        });
        return messages.at(-1)?.result;
      };
      const whole = await range("2008-04");
      expect(whole).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(words) }] });
      // The two refused requests count as one each.
      expect((await range("2004-10")).isError ?? false).toBe(false);
      const again = await send(url, { headers, body: probe(10) });
      expect(Number(again.headers["retry-after"])).toBeGreaterThan(0);
    });
  });

  test("counts all months of a new range before the range is created", () => {
    const bindings = {
      RATE_LIMIT: "160",
      WAIT_SECONDS: "1",
      ...bearerBindings({ ada: "static-token-of-ada", bob: "static-token-of-bob" }),
    };
    return limited(bindings, async ({ url }) => {
      const as = (token: string, body: unknown) => send(url, { headers: { authorization: `Bearer ${token}` }, body });
      const range = async (token: string, latitude: number, to: string) => {
        const where = { latitude, longitude: 1, confirm: true };
        const { messages } = await as(token, call("weather_range", { ...where, from: "2000-01", to }));
        return messages.at(-1)?.result;
      };
      const found = await Promise.all([1, 2, 3].map(() => range("static-token-of-ada", 3, "2008-04")));
      expect(found.map(({ isError }) => isError ?? false)).toEqual([false, false, false]);
      const refused = await range("static-token-of-ada", 4, "2008-04");
      expect(refused).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("counts as 100") }] });
      const about = { job_names: [found[0].structuredContent.job_name.replace("_3_", "_4_")] };
      const { messages } = await as("static-token-of-ada", call("probe_status", about));
      expect(messages.at(-1).result.structuredContent.statuses[0].status).toBe("not_found");
      expect((await as("static-token-of-ada", probeNothing(70))).status).toBe(429);
      expect((await as("static-token-of-ada", probeNothing(20))).status).toBe(200);
      expect((await range("static-token-of-bob", 4, "2000-01")).isError ?? false).toBe(false);
      expect((await as("static-token-of-bob", probeNothing(100))).status).toBe(200);
    });
  });

  test("applies on a local machine too, where it is generous", () =>
    limited({ RATE_LIMIT: "", AUTH_MODE: "none" }, async ({ url }) => {
      const statuses = [];
      for (let i = 0; i < 61; i++) statuses.push((await send(url, { body: probeNothing(100) })).status);
      expect(statuses.slice(0, 59)).toEqual(Array(59).fill(200));
      expect(statuses.at(-1)).toBe(429);
    }));

  test.each(["", " "])("has its default value when it is set to %j", (RATE_LIMIT) =>
    limited(
      { RATE_LIMIT, MAX_JOBS: RATE_LIMIT, ...bearerBindings({ ada: "static-token-of-ada" }) },
      async ({ url }) => {
        const headers = { authorization: "Bearer static-token-of-ada" };
        const statuses = [];
        for (let i = 0; i < 7; i++) statuses.push((await send(url, { headers, body: probeNothing(100) })).status);
        expect(statuses).toEqual([...Array(6).fill(200), 429]);
      },
    ),
  );

  test("cannot be evaded by naming another address in each request", () =>
    limited({ RATE_LIMIT: "20", AUTH_MODE: "none" }, async ({ url }) => {
      const statuses = [];
      for (let i = 0; i < 30; i++) {
        const headers = { "cf-connecting-ip": `192.0.2.${i}`, "x-forwarded-for": `192.0.2.${i}` };
        statuses.push((await send(url, { headers, body: probeNothing(1) })).status);
      }
      expect(statuses.filter((status) => status === 200).length).toBe(20);
    }));
});

test("nine ranges of 240 months are refused to a caller who may have ten jobs, and no month is created", async () => {
  await using few = await serve({ MAX_JOBS: "10", ...bearerBindings({ ada: "static-token-of-ada" }) });
  const headers = { authorization: "Bearer static-token-of-ada" };
  const before = gate.calls.length;
  const range = (latitude: number) =>
    call("weather_range", { latitude, longitude: 1, from: "1990-01", to: "2009-12", confirm: true });
  const ranges = Array.from({ length: 9 }, (_, n) => range(n + 1));
  const answers = await Promise.all(ranges.map((body) => send(few.url, { headers, body })));
  for (const { messages } of answers) {
    expect(messages.at(-1)?.result).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("this counts as 240 jobs, and a caller may start 10 jobs") }],
    });
  }
  const created = gate.calls.slice(before).filter(({ kind }) => /create|fence/.test(kind));
  expect(created.filter(({ id }) => id?.includes("weather"))).toEqual([]);
});

test("a call takes up to 100 names, and a call with more is told so", async () => {
  expect((await send(stack.url, { body: probe(100) })).messages[0].result.isError).toBeUndefined();
  const { messages } = await send(stack.url, { body: probe(101) });
  expect(messages[0].result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("1 to 100") }] });
});

test("a call about a hundred running jobs reads and registers them with a few requests", async () => {
  await using counted = await startGate(stack.resonate.url);
  counted.release("promise.read");
  await using edge = await serve({ RESONATE_URL: counted.url });
  const timers = Array.from({ length: 100 }, (_, n) => `timer_many${n}`);
  /** The calls to the Resonate server for one call of a tool. */
  const callsFor = async (name: string, args: object) => {
    const before = counted.calls.length;
    const { messages } = await send(edge.url, { body: call(name, args) });
    const kinds = counted.calls.slice(before).map(({ kind }) => kind);
    return { result: messages.at(-1)?.result.structuredContent, kinds };
  };
  for (const name of timers) await callsFor("set_timer", { timer_name: name.slice("timer_".length), seconds: 3_600 });
  // An isolate learns with its first call that the server reads several promises at once.
  await callsFor("probe_status", { job_names: timers });

  const probed = await callsFor("probe_status", { job_names: timers });
  expect([probed.result.statuses.length, probed.kinds]).toEqual([100, ["promise.read"]]);
  const awaited = await callsFor("await_result", { job_names: timers, timeout_seconds: 1 });
  expect(awaited.result.running).toEqual(timers);
  expect(awaited.kinds.length).toBeLessThanOrEqual(4);
  expect(new Set(awaited.kinds)).toEqual(new Set(["promise.read"]));
  const waiting = callsFor("await_result", { job_names: timers.slice(0, 2) });
  await pause(500);
  for (const name of timers.slice(0, 2)) await callsFor("cancel_job", { job_names: [name] });
  expect(Object.keys((await waiting).result.errors)).toEqual(timers.slice(0, 2));
});

test("a request has at most 16 calls to the Resonate server in flight", async () => {
  await using counted = await startGate(stack.resonate.url);
  await using edge = await serve({ RESONATE_URL: counted.url });
  const held = counted.hold("promise.get");
  const settled = Promise.allSettled([100, 10].map((count) => send(edge.url, { body: probe(count) })));
  await held;
  // 16 for the request with 100 names, and 10 for the other.
  await until("26 calls to be there", () => counted.held >= 26);
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(counted.held).toBe(26);
  counted.release("promise.get");
  await counted.close();
  await settled;
  await counted.open();
});

describe("after 1,000 requests whose clients have left", () => {
  /** Sends ten waves of a hundred requests, and aborts each once all its calls are held at the gate or answered. */
  const abandon = async (url: string, init: () => { headers?: Record<string, string>; body: unknown }, stuck: Gate) => {
    for (let wave = 0; wave < 10; wave++) {
      // Resets the connections of earlier waves, so that this machine does not run out of them.
      await stuck.close();
      await stuck.open();
      const before = stuck.held;
      const left = new AbortController();
      const sent = Array.from({ length: 100 }, () => {
        const { headers, body } = init();
        const request = { method: "POST", headers: { ...JSON_HEADERS, ...headers }, body: JSON.stringify(body) };
        return fetch(url, { ...request, signal: left.signal });
      });
      await Promise.race([Promise.all(sent), until("all to be there", () => stuck.held >= before + 100)]);
      left.abort();
      await Promise.allSettled(sent);
    }
  };

  test("in the middle of a call, the next one is served", async () => {
    await using stuck = await startGate(stack.resonate.url);
    await using edge = await serve({ RESONATE_URL: stuck.url });
    void stuck.hold("promise.get");
    await abandon(edge.url, () => ({ body: probe(1) }), stuck);
    stuck.release("promise.get");
    // A first call may still meet a connection that the gate has reset. Its error says that a retry is safe.
    const served = await until("a call to be served", async () => {
      const [{ result }] = (await send(edge.url, { body: probe(20) })).messages;
      return result.isError ? undefined : result.structuredContent.statuses;
    });
    expect(served.length).toBe(20);
  });

  test("in the middle of a task's start, the next one is served", async () => {
    await using stuck = await startGate(stack.resonate.url);
    await using edge = await serve({ RESONATE_URL: stuck.url });
    void stuck.hold("promise.create");
    const params = { name: "timer", arguments: { timer_name: "left", seconds: 600 } };
    const headers = rpcHeaders("tools/call", params);
    await abandon(edge.url, () => ({ headers, body: rpcMessage("tools/call", params) }), stuck);
    stuck.release("promise.create");
    const { result } = await rpc(edge.url, "tools/call", params);
    expect(result.resultType).toBe("task");
  });

  test("while they listened, the next listener is served", async () => {
    await using stuck = await startGate(stack.resonate.url);
    await using edge = await serve({ RESONATE_URL: stuck.url });
    const listen = { notifications: { toolsListChanged: true } };
    const headers = rpcHeaders("subscriptions/listen");
    await abandon(edge.url, () => ({ headers, body: rpcMessage("subscriptions/listen", listen) }), stuck);
    const left = new AbortController();
    const body = JSON.stringify(rpcMessage("subscriptions/listen", listen));
    const response = await fetch(edge.url, { method: "POST", headers, body, signal: left.signal });
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    left.abort();
  });
});

describe("a page of another origin", () => {
  const evil = { origin: "https://evil.example" };
  const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
  let deployed: Stack;
  beforeAll(async () => {
    deployed = await serve({ ALLOWED_HOSTS: "", CORS_ORIGINS: "https://friend.example" });
  });
  afterAll(() => deployed?.[Symbol.asyncDispose]());

  test.each(["https://evil.example", "null", "https://127.0.0.1.evil.example", "http://localhost"])(
    "(%s) is refused even where no host names are configured",
    async (origin) => {
      expect((await send(deployed.url, { headers: { origin }, body: list })).status).toBe(403);
      expect((await send(`${deployed.origin}/ready`, { method: "GET", headers: { origin } })).status).toBe(403);
    },
  );

  test("is let through when its origin is listed, or is the server's own", async () => {
    for (const origin of ["https://friend.example", deployed.origin]) {
      expect((await send(deployed.url, { headers: { origin }, body: list })).status).toBe(200);
    }
    const addressed = { host: "mcp.example", origin: "https://mcp.example" };
    expect((await send(deployed.url, { headers: addressed, body: list })).status).toBe(200);
  });

  test("and a request to another host are refused on every path where host names are configured", async () => {
    for (const path of ["/health", "/ready", "/", "/.well-known/oauth-protected-resource"]) {
      const { status } = await send(`${stack.origin}${path}`, { method: "GET", headers: { host: "evil.example" } });
      expect([path, status]).toEqual([path, 403]);
    }
    expect((await send(stack.url, { headers: evil, body: list })).status).toBe(403);
  });
});

describe("a request meant to trip the server", () => {
  const deep = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
  const modern = (method: string, params = "") =>
    `{"jsonrpc":"2.0","id":7,"method":${JSON.stringify(method)},"params":{${params}"_meta":{"io.modelcontextprotocol/protocolVersion":"${REVISION}","io.modelcontextprotocol/clientCapabilities":{}}}}`;
  const legacy = (method: string, params = "{}") =>
    `{"jsonrpc":"2.0","id":7,"method":${JSON.stringify(method)},"params":${params}}`;
  const methods = ["constructor", "__proto__", "toString", "hasOwnProperty", "prototype", "valueOf"];

  afterEach(() => {
    expect(stack.edge.process.logs().filter(({ level }) => level === "error")).toEqual([]);
  });

  test.each(methods)("by its method (%s) is told that the method does not exist", async (method) => {
    const old = await send(stack.url, { body: legacy(method) });
    expect(old.messages[0]).toMatchObject({ id: 7, error: { code: -32601 } });
    const headers = { "mcp-protocol-version": REVISION, "mcp-method": method };
    const current = await send(stack.url, { headers, body: modern(method) });
    expect(current.status).toBeLessThan(500);
    expect(current.messages[0]).toMatchObject({ id: 7, error: { code: -32601 } });
  });

  test.each([
    ["an object", '{"toString":1}'],
    ["an object with a name", '{"name":"set_timer"}'],
    ["a list of objects", '[{"toString":1,"valueOf":1}]'],
    ["nothing", "null"],
  ])("by a tool name that is %s is told so", async (_what, name) => {
    const { status, messages } = await send(stack.url, {
      body: legacy("tools/call", `{"name":${name},"arguments":{}}`),
    });
    expect(status).toBeLessThan(500);
    expect(messages[0]).toMatchObject({
      id: 7,
      error: { code: expect.toSatisfy((code: number) => code <= -32600) },
    });
    expect(messages[0].error.code).not.toBe(-32603);
  });

  test.each([
    ["resources/read", '{"uri":{"toString":1}}', "uri"],
    ["resources/read", "{}", "uri"],
    ["resources/list", '{"cursor":[1]}', "cursor"],
    [
      "initialize",
      '{"protocolVersion":1,"capabilities":{},"clientInfo":{"name":"a","version":"1"}}',
      "protocolVersion",
    ],
  ])("by the parameters of %s (%s) is told which one is wrong", async (method, params, field) => {
    const { messages } = await send(stack.url, { body: legacy(method, params) });
    expect(messages[0]).toMatchObject({ id: 7, error: { code: -32602, message: expect.stringContaining(field) } });
    if (method === "initialize") return;
    const headers = { "mcp-protocol-version": REVISION, "mcp-method": method, "mcp-name": "job://x" };
    const current = await send(stack.url, {
      headers,
      body: modern(method, `${params.slice(1, -1)},`.replace(/^,/, "")),
    });
    expect([current.status < 500, current.messages[0]?.error.code]).toEqual([true, expect.toBeOneOf([-32602, -32020])]);
  });

  test.each([
    ["name", `{"name":${deep(200_000)}}`],
    ["arguments", `{"name":"probe_status","arguments":{"job_names":${deep(200_000)}}}`],
    ["_meta", `{"name":"probe_status","_meta":{"progressToken":${deep(200_000)}}}`],
  ])("by a value nested 200,000 deep in its %s is told so", async (_what, params) => {
    for (const body of [legacy("tools/call", params), `[${legacy("tools/call", params)}]`]) {
      const { status, messages } = await send(stack.url, { body });
      expect([status, messages[0]?.error.code]).toEqual([400, -32600]);
    }
  });

  test("by a 600 KB name that is slow to normalize is told what is accepted, while others are served", async () => {
    const timer_name = "e\u0323\u0301\u0302".repeat(86_000);
    // If names were normalized before their length is checked, this many calls would exceed the time of a test.
    const calls = Array.from({ length: 5 }, () => [
      call("set_timer", { timer_name, seconds: 5 }),
      call("get_timer_status", { timer_name }),
    ]);
    const answers = calls.flat().map((body) => send(stack.url, { body }));
    expect((await fetch(`${stack.origin}/health`)).status).toBe(200);
    for (const { messages } of await Promise.all(answers)) {
      expect(messages[0].result).toMatchObject({
        isError: true,
        content: [{ text: expect.stringContaining("timer_name") }],
      });
      expect(messages[0].result.content[0].text.length).toBeLessThan(1_000);
    }
  });

  test("by a time zone of 900 KB of spaces is told so, while others are served", async () => {
    const timezone = `${" ".repeat(900_000)}[`;
    const month = { latitude: 1, longitude: 1, year: 2013, month: 1, timezone };
    const answers = ["start_gathering", "weather_data"].map((tool) => send(stack.url, { body: call(tool, month) }));
    expect((await fetch(`${stack.origin}/health`)).status).toBe(200);
    for (const { messages } of await Promise.all(answers)) {
      const refused = { isError: true, content: [{ text: expect.stringContaining("time zone") }] };
      expect(messages.at(-1)?.result).toMatchObject(refused);
    }
  });

  test("is told apart from one with brackets in a string or ordinary nesting, which is served", async () => {
    const args = { job_names: ["[".repeat(500), '\\"[['.repeat(100)] };
    expect((await send(stack.url, { body: call("probe_status", args) })).messages[0].result.isError).toBeUndefined();
    const body = legacy(
      "tools/call",
      `{"name":"probe_status","arguments":{"job_names":["timer_x"],"other":${deep(50)}}}`,
    );
    expect((await send(stack.url, { body })).messages[0].result.isError).toBeUndefined();
  });
});

describe("the log", () => {
  test("has only lines of bounded length and printable characters, for any request", async () => {
    await using logged = await serve({});
    const long = "x".repeat(900_000);
    const strange = "evil\r\n\u001b[31m\u009b1m\u2028\u202e\u200b";
    for (const name of [long, strange]) {
      await send(logged.url, { body: { jsonrpc: "2.0", id: 1, method: name } });
      await send(logged.url, { body: call(name) });
    }
    const lines = await until("four lines", () => (linesOf(logged).length >= 4 ? linesOf(logged) : undefined));
    for (const line of lines) expect(JSON.stringify(line).length).toBeLessThan(1_000);
    expect(logged.edge.process.output().length).toBeLessThan(10_000);
    // oxlint-disable-next-line no-control-regex -- the test looks for control characters
    expect(logged.edge.process.output()).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u200b]/);
    expect(logged.edge.process.output()).toContain("evil");
  });

  test("and the answer do not repeat a name as long as the request", async () => {
    const { text } = await send(stack.url, { body: call("x".repeat(900_000)) });
    expect(text.length).toBeLessThan(2_000);
  });

  test.each(["ray-1", "x".repeat(10_000), "8f3c1a2b4d5e6f70-FRA\tinjected", "8F3C1A2B4D5E6F70", ""])(
    "takes a request id over from a caller only if it has the form of Cloudflare's (%#)",
    async (ray) => {
      const { headers } = await send(stack.url, { headers: { "cf-ray": ray }, body: probe(1) });
      expect(headers["x-request-id"]).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
    },
  );

  test("has a line for a refused call of a waiting tool", async () => {
    await using logged = await serve({});
    await send(logged.url, { body: call("await_result", 5) });
    await send(logged.url, { body: { ...call("await_result", {}), params: { name: "await_result", task: 1 } } });
    const lines = await until("two lines", () => (linesOf(logged).length >= 2 ? linesOf(logged) : undefined));
    expect(lines).toMatchObject([
      { method: "tools/call", tool: "await_result" },
      { method: "tools/call", tool: "await_result" },
    ]);
  });
});

test("/ready asks the Resonate server only once in a while, however often /ready is requested", async () => {
  await using counted = await startGate(stack.resonate.url);
  await using edge = await serve({ RESONATE_URL: counted.url });
  const answers = await Promise.all(Array.from({ length: 200 }, () => fetch(`${edge.origin}/ready`)));
  expect(answers.map(({ status }) => status)).toEqual(Array(200).fill(200));
  expect(counted.others).toBeLessThanOrEqual(3);
});
