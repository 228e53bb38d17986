import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { newToken } from "../../cli/static-token.ts";
import { promise } from "../../test/contract/server.ts";
import { HEAD, TestObject, turns } from "../../test/support/object/test-object.ts";
import { until } from "../../testing/stack/program.ts";
import { MAX_TASKS_PER_FUNCTION } from "./execution/runner-pool.ts";

let host: TestObject;
beforeEach(() => {
  vi.spyOn(console, "error").mockImplementation(() => {});
  host = new TestObject();
});
afterEach(() => vi.restoreAllMocks());

test("workers outside of the account need a token, and reach the namespace alone but never the key", async () => {
  const { token, sha256 } = newToken();
  const env = { RESONATE_TOKENS: JSON.stringify([{ name: "gpu", sha256 }]), RESONATE_NAMESPACE: "prod/" };
  host.restart(env);
  const statusOf = async (kind: string, data: object, auth?: string) => {
    const body = JSON.stringify({ kind, head: { ...HEAD, ...(auth !== undefined && { auth }) }, data });
    return (await host.server.fetch(new Request("http://resonate/public", { method: "POST", body }))).status;
  };
  const get = async (path: string, headers = {}) =>
    (await host.server.fetch(new Request(`http://resonate/public${path}`, { headers }))).status;
  await host.call("promise.create", promise("prod/job", { group: "g" }));
  await host.call("promise.create", promise("other"));
  expect(await statusOf("promise.get", { id: "prod/job" })).toBe(401);
  expect(await statusOf("promise.get", { id: "prod/job" }, `${token}x`)).toBe(401);
  expect(await statusOf("promise.get", { id: "prod/job" }, token)).toBe(200);
  expect(await statusOf("promise.get", { id: "other" }, token)).toBe(403);
  expect(await statusOf("promise.search", {}, token)).toBe(403);
  expect(await statusOf("task.acquire", { id: "prod/job", version: 0, pid: "p", ttl: 1_000 }, token)).toBe(200);
  const action = { kind: "promise.create", head: HEAD, data: promise("other:1") };
  expect(await statusOf("task.fence", { id: "prod/job", version: 1, action }, token)).toBe(403);
  const suspend = [{ kind: "promise.register_callback", head: HEAD, data: { awaiter: "prod/job", awaited: "other" } }];
  expect(await statusOf("task.suspend", { id: "prod/job", version: 1, actions: suspend }, token)).toBe(403);
  expect(await statusOf("task.heartbeat", { pid: "p", tasks: [{ id: "other", version: 1 }] }, token)).toBe(403);
  expect([await get("/key"), await get("/usage")]).toEqual([404, 404]);
  expect([await get("/poll/g/1"), await get("/poll/edge/1", { authorization: `Bearer ${token}` })]).toEqual([401, 403]);
});

test("an operator needs an operator's token: a worker's token is refused", async () => {
  const { token, sha256 } = newToken();
  host = new TestObject({ RESONATE_TOKENS: JSON.stringify([{ name: "gpu", sha256 }]) });
  for (const path of ["usage", "rows", "key", "bookmark"]) {
    expect((await host.operate("GET", path, { token })).status).toBe(401);
    expect((await host.operate("GET", path, { token: "" })).status).toBe(401);
  }
  expect(await host.operate("GET", "usage")).toMatchObject({ status: 200, data: { requests: 9, size: 4_096 } });
});

test.each([
  ["GET", "caller"],
  ["POST", "caller?caller="],
  ["POST", "caller?callers=ada"],
  ["POST", "caller?caller=ada&caller=bob"],
  ["POST", "rest?for=60"],
  ["POST", "recover?at=2026-01-01"],
  ["GET", "bucket?name=b"],
  ["GET", "rows?from=1"],
])("an operator's request that says more, less or else than its path knows is refused: %s %s", async (method, path) => {
  expect((await host.operate(method, path)).status).toBe(400);
  expect((await host.server.fetch(new Request("http://resonate/usage"))).status).toBe(200);
});

test("a paused server answers no request and handles no time-out until it is resumed", async () => {
  const timeoutAt = Date.now() + 1;
  await host.call("promise.create", promise("due", { timeoutAt }));
  expect((await host.operate("GET", "rows")).status).toBe(409);
  await host.operate("POST", "rest?forever");
  await until("the deadline", () => Date.now() > timeoutAt);
  host.state.alarm = null;
  await host.server.alarm();
  expect(host.state.alarm).toBeNull();
  expect((await host.call("promise.get", { id: "due" })).status).toBe(503);
  expect((await host.server.fetch(new Request("http://resonate/poll/g/1"))).status).toBe(503);
  // The pause has no end: it also outlasts a restart of the object.
  const first = host.server;
  host.restart();
  expect((await host.call("promise.get", { id: "due" })).status).toBe(503);
  host.server = first;
  await host.operate("POST", "wake");
  await host.server.alarm();
  const { data } = await (await host.call("promise.get", { id: "due" })).json();
  expect(data.promise.state).toBe("rejected_timedout");
});

/** Gives the object a runner, whose answers `run` makes; returns a function that pauses or resumes the object. */
function addRunner(run: (task: { id: string; version: number }) => Promise<object>) {
  const runner = {
    fetch: async (_url: string, { body }: { body: string }) => Response.json(await run(JSON.parse(body).task)),
  };
  host.restart({ RUNNER: { idFromName: () => runner, get: () => runner } });
  return async (path: "rest" | "wake") => {
    expect((await host.operate("POST", path)).status).toBe(200);
    await turns(20);
  };
}

test("no runner gets a task during a pause, and at its end runners get the tasks that wait", async () => {
  vi.spyOn(console, "warn").mockImplementation(() => {});
  let tries = 0;
  const operate = addRunner(async () => {
    tries += 1;
    throw new Error("no answer");
  });
  await host.call("promise.create", promise("job", { group: "workers" }));
  await until("the runner", () => tries === 1);
  await operate("rest");
  expect(tries).toBe(1);
  await operate("wake");
  expect(tries).toBe(2);
});

test("a task that waits for a slot during a pause runs once a slot is free", async () => {
  const running = new Map<string, () => void>();
  const operate = addRunner(async ({ id, version }) => {
    await host.call("task.acquire", { id, version, pid: id, ttl: 3_600_000 });
    await new Promise<void>((resolve) => running.set(id, resolve));
    return { isKnown: true };
  });
  for (let n = 0; n <= MAX_TASKS_PER_FUNCTION; n++)
    await host.call("promise.create", promise(`job${n}`, { group: "workers" }));
  await until("all but one", () => running.size === MAX_TASKS_PER_FUNCTION);
  await operate("rest");
  await operate("wake");
  expect(running.size).toBe(MAX_TASKS_PER_FUNCTION);
  running.get("job0")?.();
  await until("the last", () => running.has(`job${MAX_TASKS_PER_FUNCTION}`));
  for (const end of running.values()) end();
});

test("another object restores a backup from the bucket, page by page; an object with jobs refuses it", async () => {
  const files = new Map<string, string>();
  const BACKUPS = {
    put: async (key: string, text: string) => void files.set(key, text),
    get: async (key: string) => (files.has(key) ? { text: async () => files.get(key) ?? "" } : null),
  };
  host.restart({ BACKUPS });
  const large = "x".repeat(400_000);
  for (let n = 0; n < 110; n++) {
    await host.call("promise.create", { ...promise(`job${n}`, { group: "g" }), param: { data: large } });
  }
  await host.operate("POST", "rest");
  let after: string | undefined;
  let pages: number | undefined;
  for (let page = 0; pages === undefined;) {
    const query = `name=b&page=${page}${after === undefined ? "" : `&after=${encodeURIComponent(after)}`}`;
    const { data } = await host.operate("POST", `bucket?${query}`);
    ({ pages } = data);
    page = data.page;
    after = JSON.stringify(data.after);
  }
  expect(pages).toBeGreaterThan(20);

  const other = new TestObject();
  await other.operate("POST", "rest");
  for (let page = 0; page < pages; page++) {
    const { data } = await host.operate("GET", `bucket?name=b&page=${page}`);
    expect(await other.operate("POST", page === 0 ? "rows?first" : "rows", { body: data })).toMatchObject({ data: {} });
  }
  // An interrupted restore may be repeated; after its end, the object refuses another one.
  expect((await other.operate("POST", "rows?first", { body: "[]" })).data.refused).toBeUndefined();
  await other.operate("POST", "wake");
  await other.operate("POST", "rest");
  expect((await other.operate("POST", "rows?first", { body: "[]" })).data.refused).toContain("has jobs already");
  await other.operate("POST", "wake");
  const { data } = await (await other.call("promise.get", { id: "job99" })).json();
  expect(data.promise).toMatchObject({ state: "pending", param: { data: large } });
  const stream = await other.listen("g");
  await until("its tasks", () => stream.text.includes('"execute"'));
  stream.leave();
});

test("a restart of the object restores an earlier state, and the answer has the bookmark that undoes it", async () => {
  const time = "2026-11-01T00:00:00.000Z";
  expect((await host.operate("GET", `bookmark?time=${time}`)).data).toEqual({ bookmark: `at ${time}` });
  expect((await host.operate("POST", `recover?time=${time}`)).data).toEqual({ bookmark: `at ${time}`, undo: "undo" });
  await until("the end of this instance", () => host.state.isAborted);
  expect(host.state.next).toBe(`at ${time}`);
});
