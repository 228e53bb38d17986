/** What third-party clients need, tested with raw requests that no client library has put in order. */
import { Codec } from "@resonatehq/sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Gate } from "../support/gate.ts";
import { rpc, rpcHeaders, rpcMessage, TASKS } from "../support/rpc.ts";
import { type GatedStack, startGatedStack } from "../support/stack.ts";

let gate: Gate;
let stack: GatedStack;
beforeAll(async () => {
  stack = await startGatedStack({ workers: 0 });
  gate = stack.gate;
});
afterAll(() => stack?.[Symbol.asyncDispose]());

/** Capabilities with an unknown entry, which makes the edge leave the request to the SDK. */
const BY_SDK = { ...TASKS, "com.example": {} };

/** Calls a tool as a client without the Tasks extension. */
async function call(name: string, args: object) {
  const { result } = await rpc(stack.url, "tools/call", { name, arguments: args }, { capabilities: {} });
  return result;
}

describe("the list", () => {
  const UI = { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } };

  test("is the same for every client", async () => {
    const declared = [{}, TASKS, BY_SDK, { elicitation: {} }, { extensions: UI }];
    const modern = declared.map(async (capabilities) => {
      const { result } = await rpc(stack.url, "tools/list", {}, { capabilities });
      return JSON.stringify(result.tools);
    });
    const legacy = ["2025-03-26", "2025-06-18", "2025-11-25"].map(async (revision) => {
      const headers = { ...rpcHeaders("tools/list"), "mcp-protocol-version": revision };
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
      const text = await (await fetch(stack.url, { method: "POST", headers, body })).text();
      return JSON.stringify(JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text).result.tools);
    });
    const lists = await Promise.all([...modern, ...legacy]);
    expect(JSON.parse(lists[0] as string).length).toBeGreaterThan(10);
    expect(new Set(lists).size).toBe(1);
  });

  test("costs a model less than 6,200 bytes, plus less than 1,300 for schedule_job and forget_jobs", async () => {
    const { tools } = (await rpc(stack.url, "tools/list", {}, { capabilities: {} })).result;
    expect(tools.map(({ name }: { name: string }) => name)).toEqual(
      expect.arrayContaining(["start_gathering", "probe_status", "job_card", "answer_for_user"]),
    );
    const paid = (tools as Record<string, unknown>[]).map(({ name, description, inputSchema }) => {
      return { name, description, inputSchema };
    });
    const size = (part: object[]) => Buffer.byteLength(JSON.stringify(part));
    const isLater = ({ name }: (typeof paid)[number]) => /^(schedule_job|forget_jobs)$/.test(String(name));
    expect(size(paid.filter((tool) => !isLater(tool)))).toBeLessThan(6_200);
    expect(size(paid.filter(isLater))).toBeLessThan(1_300);
  });

  test("hides the tools of cards from models, with the field that each kind of host reads", async () => {
    const { tools } = (await rpc(stack.url, "tools/list")).result;
    const hidden = tools.filter((tool: { _meta?: object }) => "openai/visibility" in { ...tool._meta });
    expect(hidden.map(({ name }: { name: string }) => name)).toEqual(["job_card", "answer_for_user"]);
    for (const { _meta } of hidden) {
      expect(_meta).toMatchObject({ ui: { visibility: ["app"] }, "openai/visibility": "private" });
    }
  });

  test("says its purpose in its first words, for hosts that cut texts or search tools by their words", async () => {
    const { instructions } = (await rpc(stack.url, "server/discover")).result;
    expect(instructions.slice(0, 150)).toMatch(/weather.*timer|timer.*weather/is);
    const { tools } = (await rpc(stack.url, "tools/list")).result;
    const described = new Map<string, string>(tools.map(({ name, description }: never) => [name, description]));
    for (const [name, words] of Object.entries({
      start_gathering: /month of historical daily weather/,
      set_timer: /timer/,
      probe_status: /status of jobs/,
      await_result: /wait.*jobs|jobs.*wait/is,
    })) {
      expect([name, described.get(name)?.slice(0, 150)]).toEqual([name, expect.stringMatching(words)]);
    }
    const loaded = tools.filter((tool: { _meta?: object }) => "anthropic/alwaysLoad" in { ...tool._meta });
    expect(loaded.map(({ name }: { name: string }) => name)).toEqual(
      expect.arrayContaining(["probe_status", "await_result"]),
    );
  });

  test("tells a model to wait in short turns and never to agree for the user", async () => {
    const { result } = await rpc(stack.url, "tools/list");
    const [wait, range] = ["await_result", "weather_range"].map((name) =>
      result.tools.find((tool: { name: string }) => tool.name === name),
    );
    expect(wait.description).toContain("wait in turns");
    expect(range.inputSchema.properties.confirm.description).toContain("never set it unasked");
  });
});

describe("a request without the Mcp-Name header", () => {
  const post = async (method: string, params: object, capabilities: object) => {
    const body = JSON.stringify(rpcMessage(method, params, capabilities));
    const response = await fetch(stack.url, { method: "POST", headers: rpcHeaders(method), body });
    const text = await response.text();
    return JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text);
  };

  test.each([
    ["by the edge itself", TASKS],
    ["by the SDK", BY_SDK],
  ])("is served for a task %s", async (what, capabilities) => {
    const timer = { name: "timer", arguments: { timer_name: what, seconds: 3_600 } };
    const { taskId } = (await rpc(stack.url, "tools/call", timer)).result;
    expect((await post("tasks/get", { taskId }, capabilities)).result).toMatchObject({ taskId, status: "working" });
    expect(await post("tasks/update", { taskId, inputResponses: {} }, capabilities)).toHaveProperty("result");
    expect(await post("tasks/cancel", { taskId }, capabilities)).toHaveProperty("result");
    expect((await post("tasks/get", { taskId }, capabilities)).result.status).toBe("cancelled");
  });

  test.each([
    ["tools/call", { name: "probe_status", arguments: { job_names: ["timer_none"] } }],
    ["resources/read", { uri: "job://timer_none" }],
    ["prompts/get", { name: "none" }],
  ])("is refused for %s", async (method, params) => {
    for (const capabilities of [{}, TASKS, BY_SDK]) {
      expect((await post(method, params, capabilities)).error).toMatchObject({ code: -32020 });
    }
  });
});

describe("an argument that a tool does not know", () => {
  const month = { year: 2013, month: 5 };

  test("is named in the error about a missing argument, with a suggestion", async () => {
    const place = await call("start_gathering", { lat: 47.6, lon: -122.3, ...month });
    expect(place.content[0].text).toMatch(/^Nothing was done: [\s\S]*latitude: is missing/);
    expect(place.content[0].text).toContain('"lat" is not an argument of this tool. Did you mean latitude?');
    expect(place.content[0].text).toContain('"lon" is not an argument of this tool. Did you mean longitude?');
    const probe = await call("probe_status", { job_name: "timer_tea" });
    expect(probe.content[0].text).toContain('"job_name" is not an argument of this tool. Did you mean job_names?');
  });

  test("is otherwise noted, and the call is made", async () => {
    const { content, structuredContent } = await call("set_timer", { timer_name: "noted", seconds: 3_600, why: "tea" });
    expect(structuredContent).toMatchObject({ promise_id: "timer_noted", status: "running" });
    expect(content.at(-1).text).toBe('Ignored: "why" is not an argument of this tool.');
  });

  test("is noted when the call is answered with a task", async () => {
    const params = { name: "timer", arguments: { timer_name: "noted task", seconds: 3_600, why: "tea" } };
    for (const capabilities of [TASKS, BY_SDK]) {
      const { result } = await rpc(stack.url, "tools/call", params, { capabilities });
      expect(result).toMatchObject({ resultType: "task", statusMessage: expect.stringContaining('Ignored: "why"') });
    }
  });

  test("is noted when the call is refused for another reason", async () => {
    const long = { latitude: 47.6, longitude: -122.3, from: "2012-01", to: "2014-02" };
    const { content, isError } = await call("weather_range", { ...long, confirmed: true });
    expect(isError).toBe(true);
    expect(content[0].text).toMatch(/^Nothing was done: weather_range_.* takes 26 requests/);
    expect(content[0].text).toContain('"confirmed" is not an argument of this tool. Did you mean confirm?');
  });
});

test.each([
  ["no cards", {}, "does not say that it shows cards"],
  ["cards, but not of which kind", { "io.modelcontextprotocol/ui": {} }, "does not say that it shows cards"],
  ["cards of another kind", { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html"] } }, "does not say"],
  ["cards", { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } }, "names no job"],
])("an answer for the user is refused to a client that declares %s", async (_what, extensions, words) => {
  const params = { name: "answer_for_user", arguments: { job_name: "timer_none", question: "q", answer: "null" } };
  for (const capabilities of [{ extensions }, { extensions, "com.example": {} }]) {
    const { result } = await rpc(stack.url, "tools/call", params, { capabilities });
    expect(result.content[0].text).toMatch(/^Nothing was done: /);
    expect(result.content[0].text).toContain(words);
  }
});

test("a waiting call reports progress even before the Resonate server answers, in every revision", async () => {
  const told = async (revision: string, [name, args]: readonly [string, object]) => {
    const params = { name, arguments: args };
    const { _meta } = rpcMessage("tools/call", params, {}).params;
    const envelope = { ...(revision === "2026-07-28" && _meta), progressToken: "p" };
    const headers = { ...rpcHeaders("tools/call", params), "mcp-protocol-version": revision };
    const body = JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { ...params, _meta: envelope },
    });
    const response = await fetch(stack.url, { method: "POST", headers, body });
    let text = "";
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString();
      if (text.includes("notifications/progress")) break;
    }
    return text;
  };
  const calls = [
    ["timer", { timer_name: "slow", seconds: 3_600 }],
    ["await_result", { job_names: ["timer_slow"] }],
  ] as const;
  const held = Promise.all([gate.hold("promise.create"), gate.hold("promise.register_listener")]);
  try {
    const revisions = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
    const heard = await Promise.all(revisions.flatMap((revision) => calls.map((call) => told(revision, call))));
    for (const text of heard) expect(text).toContain('"progressToken":"p"');
    await held;
  } finally {
    gate.release("promise.create");
    gate.release("promise.register_listener");
  }
});

test("a client that connects with `?text=once` gets structured content without a copy as text, in every revision", async () => {
  await call("set_timer", { timer_name: "once", seconds: 3_600 });
  const job_names = Array.from({ length: 20 }, () => "timer_once");
  const ask = async (url: string, revision: string, more: object, capabilities: object = {}) => {
    const params = { name: "probe_status", arguments: { job_names, ...more } };
    const headers = { ...rpcHeaders("tools/call", params), "mcp-protocol-version": revision };
    const message = rpcMessage("tools/call", params, capabilities);
    const body = JSON.stringify(revision === "2026-07-28" ? message : { ...message, params });
    const text = await (await fetch(url, { method: "POST", headers, body })).text();
    return JSON.parse(/^data: (.*"result".*)$/m.exec(text)?.[1] ?? text).result;
  };
  const kinds = [
    ["2025-03-26", {}],
    ["2025-11-25", {}],
    ["2026-07-28", {}],
    ["2026-07-28", BY_SDK],
  ] as const;
  for (const [revision, capabilities] of kinds) {
    const twice = await ask(stack.url, revision, {}, capabilities);
    const once = await ask(`${stack.url}?text=once`, revision, {}, capabilities);
    expect(twice.content).toEqual([{ type: "text", text: JSON.stringify(twice.structuredContent) }]);
    expect(once.content).toEqual([{ type: "text", text: "In structuredContent." }]);
    expect(once.structuredContent).toEqual(twice.structuredContent);
    // Text that is not in the structured content stays.
    const noted = await ask(`${stack.url}?text=once`, revision, { job_nams: [] }, capabilities);
    expect(noted.content.map(({ text }: { text: string }) => text)).toEqual([
      "In structuredContent.",
      expect.stringContaining("job_nams"),
    ]);
  }
});

test("a newer attempt is looked up only if the found one ended without a result", async () => {
  const settled = async (name: string, state: "resolved" | "rejected", value: unknown) => {
    const id = stack.namespace + name;
    await stack.resonate.start({ id, func: "timer", args: {}, group: "nobody" });
    await stack.resonate.call("promise.settle", { id, state, value: new Codec().encode(value) });
  };
  await settled("timer_fired", "resolved", "complete");
  await settled("timer_failed", "rejected", new Error("an old story"));
  await call("set_timer", { timer_name: "runs", seconds: 3_600 });
  const before = gate.calls.length;
  const job_names = ["timer_fired", "timer_runs", "timer_failed"];
  const { statuses } = (await call("probe_status", { job_names })).structuredContent;
  expect(statuses.map(({ status }: { status: string }) => status)).toEqual(["complete", "running", "failed"]);
  await call("await_result", { job_names: ["timer_fired", "timer_failed"] });
  await call("cancel_job", { job_names: ["timer_fired", "timer_failed"] });
  const looked = gate.calls.slice(before).flatMap(({ id }) => (id?.includes("~2") ? [id] : []));
  expect(new Set(looked)).toEqual(new Set([`${stack.namespace}timer_failed~2`]));
  expect(looked).toHaveLength(3);
});
