// The server in an object whose fake storage is durable, or refuses writes, when a test says so.

import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { newToken } from "../../cli/static-token.ts";
import { ResonateClient } from "../../core/resonate/connection/client.ts";
import { fetchFrom } from "../../core/resonate/object-address.ts";
import { promise } from "../../test/contract/server.ts";
import { until } from "../../testing/simulation/program.ts";
import type { SqlValue } from "../engine/sql.ts";
import { NodeSql } from "../node/node-sql.ts";
import { SLOTS } from "./execution/runner-pool.ts";
import { ObjectServer } from "./object-server.ts";
import type { ObjectState } from "./platform.ts";

/** The platform's storage over Node's SQLite. */
class FakeState implements ObjectState {
  readonly #db = new DatabaseSync(":memory:");
  readonly #sql = new NodeSql(this.#db);
  alarm: number | null = null;
  isFull = false;
  /** The number of statements that have written. */
  writes = 0;
  /** The promise that `sync` returns. */
  durable: Promise<void> = Promise.resolve();

  /** The bookmark to restore at the next start, and whether the object was aborted for it. */
  next: string | undefined;
  isAborted = false;

  readonly storage = {
    sql: {
      databaseSize: 4_096,
      exec: (statement: string, ...values: SqlValue[]) => {
        if (this.isFull && /^\s*(INSERT|UPDATE|DELETE)/.test(statement)) throw new Error("the storage is full");
        if (/^\s*(INSERT|UPDATE|DELETE)/.test(statement)) this.writes += 1;
        const rows = this.#sql.all(statement, ...values);
        return { toArray: () => rows, rowsRead: rows.length, rowsWritten: 0 };
      },
    },
    transactionSync: <T>(work: () => T): T =>
      this.#db.isTransaction ? this.#sql.attempt(work) : this.#sql.transaction(work),
    sync: () => this.durable,
    getAlarm: async () => this.alarm,
    setAlarm: async (time: number) => {
      this.alarm = time;
    },
    getCurrentBookmark: async () => "now",
    getBookmarkForTime: async (time: Date) => `at ${time.toISOString()}`,
    onNextSessionRestoreBookmark: async (bookmark: string) => {
      this.next = bookmark;
      return "undo";
    },
  };

  abort(): void {
    this.isAborted = true;
  }

  blockConcurrencyWhile<T>(work: () => Promise<T>): Promise<T> {
    return work();
  }
}

const HEAD = { corrId: "1", version: "2026-04-01" };
let state: FakeState;
let object: ObjectServer;
beforeEach(() => {
  vi.spyOn(console, "error").mockImplementation(() => {});
  state = new FakeState();
  object = new ObjectServer(state);
});
afterEach(() => vi.restoreAllMocks());

async function call(kind: string, data: object): Promise<{ status: number }> {
  const body = JSON.stringify({ kind, head: HEAD, data });
  return object.fetch(new Request("http://resonate/", { method: "POST", body }));
}

async function listen(group: string): Promise<{ text: string; leave(): void }> {
  const leaving = new AbortController();
  const response = await object.fetch(new Request(`http://resonate/poll/${group}/1`, { signal: leaving.signal }));
  const got = { text: "", leave: () => leaving.abort() };
  void (async () => {
    for await (const chunk of response.body ?? []) got.text += new TextDecoder().decode(chunk);
  })();
  await until("the first byte", () => got.text !== "");
  return got;
}

test("no message leaves before its change is durable", async () => {
  const { promise: durable, resolve: isDurable } = Promise.withResolvers<void>();
  const stream = await listen("g");
  state.durable = durable;
  await call("promise.create", promise("job", { group: "g" }));
  await call("promise.get", { id: "job" });
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setTimeout(resolve));
  expect(stream.text).not.toContain("execute");
  isDurable();
  await until("the message", () => stream.text.includes('"execute"'));
  stream.leave();
});

test("connections that fail while the storage is full take no room from those that come when it has room", async () => {
  state.isFull = true;
  const poll = (id: number) => object.fetch(new Request(`http://resonate/poll/edge/${id}`));
  for (let id = 0; id < 1_001; id++) await expect(poll(id)).rejects.toThrow("full");
  state.isFull = false;
  const response = await poll(1_001);
  expect(response.status).toBe(200);
  await response.body?.cancel();
});

test("nothing keeps the object awake for a reader that has left, also if it has read nothing", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  try {
    const leaving = new AbortController();
    await object.fetch(new Request("http://resonate/poll/g/1", { signal: leaving.signal }));
    expect(vi.getTimerCount()).toBeGreaterThan(0);
    leaving.abort();
    await until("its end", () => vi.getTimerCount() === 0, 1_000);
  } finally {
    vi.useRealTimers();
  }
});

test("the alarm is set to the first time-out, and moves when an earlier one is added", async () => {
  expect(state.alarm).toBeNull();
  const later = Date.now() + 3_600_000;
  await call("promise.create", promise("later", { timeoutAt: later }));
  expect(state.alarm).toBe(later);
  await call("promise.create", promise("soon", { timeoutAt: later - 60_000 }));
  expect(state.alarm).toBe(later - 60_000);
  await call("promise.create", promise("last", { timeoutAt: later + 60_000 }));
  expect(state.alarm).toBe(later - 60_000);
});

test("an alarm whose work cannot be written does not fail but is set again after a second, and does the work once it can be written", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    const timeoutAt = Date.now() + 1_000;
    await call("promise.create", promise("due", { timeoutAt }));
    state.isFull = true;
    for (let times = 0; times < 10; times++) {
      expect(state.alarm).toBe(timeoutAt + times * 1_000);
      vi.setSystemTime(state.alarm as number);
      state.alarm = null;
      await object.alarm();
    }
    state.isFull = false;
    await object.alarm();
    const { data } = await ((await call("promise.get", { id: "due" })) as Response).json();
    expect(data.promise.state).toBe("rejected_timedout");
  } finally {
    vi.useRealTimers();
  }
});

test("time-outs beyond one alarm's limit are left to another alarm at once, but at a later time: workerd ignores the same time", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    const timeoutAt = Date.now() + 1_000;
    for (let n = 0; n < 2_500; n++) await call("promise.create", promise(`due${n}`, { timeoutAt }));
    vi.setSystemTime(timeoutAt);
    await object.alarm();
    expect(state.alarm).toBe(timeoutAt + 1);
    vi.setSystemTime(timeoutAt + 1);
    await object.alarm();
    expect(state.alarm).toBeGreaterThan(timeoutAt);
  } finally {
    vi.useRealTimers();
  }
});

/** Lets `ms` milliseconds pass, and handles each alarm at its time. */
async function pass(ms: number): Promise<void> {
  const end = Date.now() + ms;
  while (state.alarm !== null && state.alarm <= end) {
    vi.setSystemTime(state.alarm);
    state.alarm = null;
    await object.alarm();
    // The alarm may have woken a runner.
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setTimeout(resolve));
  }
  vi.setSystemTime(end);
}

test("jobs without a connected worker cost nothing while they wait, and are dispatched in order when one connects", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    const timeoutAt = Date.now() + 30 * 86_400_000;
    for (const id of ["first", "second", "third"]) {
      await call("promise.create", promise(id, { group: "g", timeoutAt }));
      vi.setSystemTime(Date.now() + 1_000);
    }
    await pass(600_000);
    const { writes } = state;
    await pass(12 * 3_600_000);
    expect(state.writes).toBe(writes);
    await call("promise.create", promise("last", { group: "g", timeoutAt }));
    object = new ObjectServer(state);
    const stream = await listen("g");
    await until("all of them", () => stream.text.includes("third"));
    expect(stream.text.match(/first|second|third|last/g)).toEqual(["last", "first", "second", "third"]);
    // They are dispatched again to a connected worker that does not claim them.
    await pass(31_000);
    await until("all of them again", () => stream.text.match(/first|second|third/g)?.length === 6);
    stream.leave();
  } finally {
    vi.useRealTimers();
  }
});

test("an unclaimed job is dispatched again less and less often, and at the first interval again after a claim", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    await call("promise.create", promise("job", { group: "g", timeoutAt: Date.now() + 86_400_000 }));
    const stream = await listen("g");
    const times = () => stream.text.match(/"execute"/g)?.length ?? 0;
    await until("the first", () => times() === 1);
    await pass(31_000);
    await until("the second", () => times() === 2);
    await pass(12 * 3_600_000);
    expect(times()).toBeGreaterThan(15);
    expect(times()).toBeLessThan(25);
    const before = times();
    expect((await call("task.acquire", { id: "job", version: 0, pid: "p", ttl: 1_000 })).status).toBe(200);
    await pass(62_000);
    // When the lease has ended, and again within the minute after that.
    await until("the dispatches of the next version", () => times() >= before + 2);
    expect(stream.text).toContain('"version":1');
    stream.leave();
  } finally {
    vi.useRealTimers();
  }
});

test("a job that the runner has no code for is tried less and less often, and goes to a worker that connects", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    let looks = 0;
    const runner = {
      fetch: async () => {
        looks += 1;
        return Response.json({ isKnown: false });
      },
    };
    object = new ObjectServer(state, { RUNNER: { idFromName: () => runner, get: () => runner } });
    await call("promise.create", promise("odd", { group: "workers", timeoutAt: Date.now() + 30 * 86_400_000 }));
    await until("the first look", () => looks === 1);
    await pass(120_000);
    expect(looks).toBeGreaterThanOrEqual(3);
    await pass(10 * 86_400_000);
    expect(looks).toBeLessThanOrEqual(10 * 24 + 12);
    await call("promise.create", promise("another group's", { group: "gpu" }));
    const before = looks;
    object = new ObjectServer(state, { RUNNER: { idFromName: () => runner, get: () => runner } });
    await pass(31_000);
    expect(looks).toBe(before);
    const stream = await listen("workers");
    await until("the job", () => stream.text.includes("odd"));
    stream.leave();
  } finally {
    vi.useRealTimers();
  }
});

test("a runner receives news while it runs a task and a while longer, and its next task has another address for news", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    const woken: { news: string; end(): void }[] = [];
    const told: string[] = [];
    const runner = {
      fetch: async (url: string, { body }: { body: string }) => {
        if (url.endsWith("/news")) {
          told.push(
            ...JSON.parse(body).map((message: { data: { promise: { id: string } } }) => message.data.promise.id),
          );
          return new Response();
        }
        const { promise: ended, resolve: end } = Promise.withResolvers<void>();
        woken.push({ news: JSON.parse(body).news, end });
        await ended;
        return Response.json({ isKnown: true });
      },
    };
    object = new ObjectServer(state, { RUNNER: { idFromName: () => runner, get: () => runner } });
    const settles = async (id: string, address: string) => {
      await call("promise.create", promise(id, { group: "elsewhere" }));
      await call("promise.register_listener", { awaited: id, address });
      await call("promise.settle", { id, state: "resolved", value: {} });
      for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setTimeout(resolve));
    };
    await call("promise.create", promise("job", { group: "workers" }));
    await until("the runner", () => woken.length === 1);
    const [first] = woken;
    if (!first) expect.fail("no runner was woken");
    await settles("meanwhile", first.news);
    expect(told).toEqual(["meanwhile"]);
    first.end();
    await settles("shortly after", first.news);
    expect(told).toEqual(["meanwhile", "shortly after"]);
    vi.setSystemTime(Date.now() + 11_000);
    await settles("when it may be gone", first.news);
    expect(told.length).toBe(2);
    await call("promise.create", promise("job:next", { group: "workers" }));
    await until("the runner", () => woken.length === 2);
    expect(woken[1]?.news).not.toBe(first.news);
    woken[1]?.end();
  } finally {
    vi.useRealTimers();
  }
});

test("a time-out does not wait for a file store that does not answer", async () => {
  let asked = 0;
  const list = () => {
    asked += 1;
    return new Promise<never>(() => {});
  };
  object = new ObjectServer(state, { FILES: { list } as never });
  const timeoutAt = Date.now() + 50;
  await call("promise.create", promise("due", { timeoutAt }));
  await until("its end", async () => {
    if (state.alarm !== null && Date.now() >= state.alarm) await object.alarm();
    const body = JSON.stringify({ kind: "promise.get", head: HEAD, data: { id: "due" } });
    const answer = await object.fetch(new Request("http://resonate/", { method: "POST", body }));
    return (await answer.text()).includes("rejected_timedout");
  });
  expect(asked).toBe(1);
});

test("a job that wakes a container is reported to the cron trigger for a while, although its worker is connected", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    const container = { fetch: async () => new Response() };
    object = new ObjectServer(state, {
      WORKER: { idFromName: () => container, get: () => container },
      RUNS_IN: "container",
    });
    const isWaiting = async (group: string) => {
      const response = await object.fetch(new Request(`http://resonate/waiting/${group}`));
      return (await response.json()).isWaiting;
    };
    expect(await isWaiting("workers")).toBe(false);
    await call("promise.create", promise("job", { group: "workers" }));
    const worker = await listen("workers");
    vi.setSystemTime(Date.now() + 60_000);
    expect([await isWaiting("workers"), await isWaiting("others")]).toEqual([true, false]);
    vi.setSystemTime(Date.now() + 60_000);
    expect(await isWaiting("workers")).toBe(false);
    worker.leave();
  } finally {
    vi.useRealTimers();
  }
});

test("an alarm that the platform has dropped is set again when the object wakes", async () => {
  const timeoutAt = Date.now() + 60_000;
  await call("promise.create", promise("due", { timeoutAt }));
  state.alarm = null;
  object = new ObjectServer(state);
  await until("the alarm", () => state.alarm === timeoutAt);
});

test("a connection to a replaced instance ends, and the client connects to the new instance", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const over = new AbortController();
  try {
    const namespace = {
      idFromName: () => ({}),
      get: () => ({ fetch: (url: string | URL | Request, init?: RequestInit) => object.fetch(new Request(url, init)) }),
    };
    const client = new ResonateClient({ url: "http://resonate", fetch: fetchFrom(namespace) });
    const got: string[] = [];
    let connections = 0;
    void client.connections.listen({
      group: "g",
      id: "1",
      signal: over.signal,
      onMessage: (message) => got.push(message.kind === "execute" ? message.task.id : ""),
      onConnect: () => {
        connections += 1;
      },
      onDisconnect: () => {},
    });
    await until("the connection", () => connections === 1);
    vi.advanceTimersByTime(60_000);
    await call("promise.create", promise("before", { group: "g" }));
    await until("a message", () => got.length === 1);
    expect(connections).toBe(1);

    const replaced = object;
    object = new ObjectServer(state);
    await call("promise.create", promise("after", { group: "g" }));
    expect(object).not.toBe(replaced);
    // The old instance notices its replacement when it writes the next keep-alive comment, every five seconds.
    vi.advanceTimersByTime(5_000);
    await until("the message of the other instance", () => got.includes("after"));
    expect(connections).toBe(2);
  } finally {
    over.abort();
    vi.useRealTimers();
  }
});

test("the key is created once and kept", async () => {
  const key = async () => (await object.fetch(new Request("http://resonate/key"))).text();
  const made = await key();
  expect(made.length).toBeGreaterThanOrEqual(32);
  object = new ObjectServer(state);
  expect(await key()).toBe(made);
});

test("tables of another schema version are refused with an explanation", () => {
  state.storage.sql.exec("UPDATE schemas SET version = 7");
  expect(() => new ObjectServer(state)).toThrow(
    "schema version 7, and this version of durable-mcp-edge needs 1: deploy the version that wrote them",
  );
});

test("workers outside of the account need a token, and reach the namespace alone but never the key", async () => {
  const { token, sha256 } = newToken();
  const env = { RESONATE_TOKENS: JSON.stringify([{ name: "gpu", sha256 }]), RESONATE_NAMESPACE: "prod/" };
  object = new ObjectServer(state, env);
  const ask = async (kind: string, data: object, auth?: string) => {
    const body = JSON.stringify({ kind, head: { ...HEAD, ...(auth !== undefined && { auth }) }, data });
    return (await object.fetch(new Request("http://resonate/public", { method: "POST", body }))).status;
  };
  const get = async (path: string, headers = {}) =>
    (await object.fetch(new Request(`http://resonate/public${path}`, { headers }))).status;
  await call("promise.create", promise("prod/job", { group: "g" }));
  await call("promise.create", promise("other"));
  expect(await ask("promise.get", { id: "prod/job" })).toBe(401);
  expect(await ask("promise.get", { id: "prod/job" }, `${token}x`)).toBe(401);
  expect(await ask("promise.get", { id: "prod/job" }, token)).toBe(200);
  expect(await ask("promise.get", { id: "other" }, token)).toBe(403);
  expect(await ask("promise.search", {}, token)).toBe(403);
  expect(await ask("task.acquire", { id: "prod/job", version: 0, pid: "p", ttl: 1_000 }, token)).toBe(200);
  const action = { kind: "promise.create", head: HEAD, data: promise("other:1") };
  expect(await ask("task.fence", { id: "prod/job", version: 1, action }, token)).toBe(403);
  const suspend = [{ kind: "promise.register_callback", head: HEAD, data: { awaiter: "prod/job", awaited: "other" } }];
  expect(await ask("task.suspend", { id: "prod/job", version: 1, actions: suspend }, token)).toBe(403);
  expect(await ask("task.heartbeat", { pid: "p", tasks: [{ id: "other", version: 1 }] }, token)).toBe(403);
  expect([await get("/key"), await get("/usage")]).toEqual([404, 404]);
  expect([await get("/poll/g/1"), await get("/poll/edge/1", { authorization: `Bearer ${token}` })]).toEqual([401, 403]);
});

/** An object with an operator, and a function that makes the operator's requests. */
function operated(state: ObjectState, env: object = {}) {
  const { token, sha256 } = newToken();
  const object = new ObjectServer(state, { OPERATOR_TOKENS: JSON.stringify([{ name: "ada", sha256 }]), ...env });
  const ask = async (method: string, path: string, { body, as = token }: { body?: string; as?: string } = {}) => {
    const init = { method, headers: { authorization: `Bearer ${as}` }, ...(body !== undefined && { body }) };
    const response = await object.fetch(new Request(`http://resonate/public/operate/${path}`, init));
    const text = await response.text();
    return { status: response.status, data: text.startsWith("{") ? JSON.parse(text) : text };
  };
  return { object, ask };
}

test("an operator needs an operator's token: a worker's token is refused", async () => {
  const { token, sha256 } = newToken();
  const { ask } = operated(state, { RESONATE_TOKENS: JSON.stringify([{ name: "gpu", sha256 }]) });
  for (const path of ["usage", "rows", "key", "bookmark"]) {
    expect((await ask("GET", path, { as: token })).status).toBe(401);
    expect((await ask("GET", path, { as: "" })).status).toBe(401);
  }
  expect(await ask("GET", "usage")).toMatchObject({ status: 200, data: { requests: 9, size: 4_096 } });
});

test("a paused server answers no request and handles no time-out until it is resumed", async () => {
  const { object: resting, ask } = operated(state);
  object = resting;
  const timeoutAt = Date.now() + 1;
  await call("promise.create", promise("due", { timeoutAt }));
  expect((await ask("GET", "rows")).status).toBe(409);
  await ask("POST", "rest?forever");
  await until("the deadline", () => Date.now() > timeoutAt);
  state.alarm = null;
  await object.alarm();
  expect(state.alarm).toBeNull();
  expect((await call("promise.get", { id: "due" })).status).toBe(503);
  expect((await object.fetch(new Request("http://resonate/poll/g/1"))).status).toBe(503);
  // The pause has no end: it also outlasts a restart of the object.
  object = new ObjectServer(state);
  expect((await call("promise.get", { id: "due" })).status).toBe(503);
  object = resting;
  await ask("POST", "wake");
  await object.alarm();
  const { data } = await ((await call("promise.get", { id: "due" })) as Response).json();
  expect(data.promise.state).toBe("rejected_timedout");
});

/** The object with a runner, whose answers `run` makes, and a function that pauses or resumes the object. */
function withRunner(run: (task: { id: string; version: number }) => Promise<object>) {
  const runner = {
    fetch: async (_url: string, { body }: { body: string }) => Response.json(await run(JSON.parse(body).task)),
  };
  const { object: made, ask } = operated(state, { RUNNER: { idFromName: () => runner, get: () => runner } });
  object = made;
  return async (path: "rest" | "wake") => {
    expect((await ask("POST", path)).status).toBe(200);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setTimeout(resolve));
  };
}

test("no runner gets a task during a pause, and at its end runners get the tasks that wait", async () => {
  vi.spyOn(console, "warn").mockImplementation(() => {});
  let tries = 0;
  const operate = withRunner(async () => {
    tries += 1;
    throw new Error("no answer");
  });
  await call("promise.create", promise("job", { group: "workers" }));
  await until("the runner", () => tries === 1);
  await operate("rest");
  expect(tries).toBe(1);
  await operate("wake");
  expect(tries).toBe(2);
});

test("a task that waits for a slot during a pause runs once a slot is free", async () => {
  const running = new Map<string, () => void>();
  const operate = withRunner(async ({ id, version }) => {
    await call("task.acquire", { id, version, pid: id, ttl: 3_600_000 });
    await new Promise<void>((resolve) => running.set(id, resolve));
    return { isKnown: true };
  });
  for (let n = 0; n <= SLOTS; n++) await call("promise.create", promise(`job${n}`, { group: "workers" }));
  await until("all but one", () => running.size === SLOTS);
  await operate("rest");
  await operate("wake");
  expect(running.size).toBe(SLOTS);
  running.get("job0")?.();
  await until("the last", () => running.has(`job${SLOTS}`));
  for (const end of running.values()) end();
});

test("another object restores a backup from the bucket, page by page; an object with jobs refuses it", async () => {
  const kept = new Map<string, string>();
  const BACKUPS = {
    put: async (key: string, text: string) => void kept.set(key, text),
    get: async (key: string) => (kept.has(key) ? { text: async () => kept.get(key) ?? "" } : null),
  };
  const from = operated(state, { BACKUPS });
  object = from.object;
  const large = "x".repeat(400_000);
  for (let n = 0; n < 110; n++) {
    await call("promise.create", { ...promise(`job${n}`, { group: "g" }), param: { data: large } });
  }
  await from.ask("POST", "rest");
  let after: string | undefined;
  let pages: number | undefined;
  for (let page = 0; pages === undefined; ) {
    const where = `name=b&page=${page}${after === undefined ? "" : `&after=${encodeURIComponent(after)}`}`;
    const { data } = await from.ask("POST", `bucket?${where}`);
    ({ pages } = data);
    page = data.page;
    after = JSON.stringify(data.after);
  }
  expect(pages).toBeGreaterThan(20);

  const other = operated(new FakeState());
  await other.ask("POST", "rest");
  for (let page = 0; page < pages; page++) {
    const { data } = await from.ask("GET", `bucket?name=b&page=${page}`);
    expect(await other.ask("POST", page === 0 ? "rows?first" : "rows", { body: data })).toMatchObject({ data: {} });
  }
  // An interrupted restore may be repeated; after its end, the object refuses another one.
  expect((await other.ask("POST", "rows?first", { body: "[]" })).data.refused).toBeUndefined();
  await other.ask("POST", "wake");
  await other.ask("POST", "rest");
  expect((await other.ask("POST", "rows?first", { body: "[]" })).data.refused).toContain("has jobs already");
  await other.ask("POST", "wake");
  object = other.object;
  const { data } = await ((await call("promise.get", { id: "job99" })) as Response).json();
  expect(data.promise).toMatchObject({ state: "pending", param: { data: large } });
  const stream = await listen("g");
  await until("its tasks", () => stream.text.includes('"execute"'));
  stream.leave();
});

test("a restart of the object restores an earlier state, and the answer has the bookmark that undoes it", async () => {
  const { ask } = operated(state);
  const time = "2026-11-01T00:00:00.000Z";
  expect((await ask("GET", `bookmark?time=${time}`)).data).toEqual({ bookmark: `at ${time}` });
  expect((await ask("POST", `recover?time=${time}`)).data).toEqual({ bookmark: `at ${time}`, undo: "undo" });
  await until("the end of this instance", () => state.isAborted);
  expect(state.next).toBe(`at ${time}`);
});
