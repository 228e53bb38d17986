import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ResonateClient } from "../../core/resonate/connection/client.ts";
import { fetchFrom } from "../../core/resonate/object-address.ts";
import { promise } from "../../test/contract/server.ts";
import { TestObject, turns } from "../../test/support/object/test-object.ts";
import { until } from "../../testing/stack/program.ts";
import { ObjectServer } from "./object-server.ts";

let host: TestObject;
beforeEach(() => {
  vi.spyOn(console, "error").mockImplementation(() => {});
  host = new TestObject();
});
afterEach(() => vi.restoreAllMocks());

test("no message leaves before its change is durable", async () => {
  const { promise: durable, resolve: isDurable } = Promise.withResolvers<void>();
  const stream = await host.listen("g");
  host.state.durable = durable;
  await host.call("promise.create", promise("job", { group: "g" }));
  await host.call("promise.get", { id: "job" });
  await turns(20);
  expect(stream.text).not.toContain("execute");
  isDurable();
  await until("the message", () => stream.text.includes('"execute"'));
  stream.leave();
});

test("connections that fail while the storage is full take no room from those that come when it has room", async () => {
  host.state.isFull = true;
  const poll = (id: number) => host.server.fetch(new Request(`http://resonate/poll/edge/${id}`));
  for (let id = 0; id < 1_001; id++) await expect(poll(id)).rejects.toThrow("full");
  host.state.isFull = false;
  const response = await poll(1_001);
  expect(response.status).toBe(200);
  await response.body?.cancel();
});

test("nothing keeps the object awake for a reader that has left, also if it has read nothing", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  try {
    const leaving = new AbortController();
    await host.server.fetch(new Request("http://resonate/poll/g/1", { signal: leaving.signal }));
    expect(vi.getTimerCount()).toBeGreaterThan(0);
    leaving.abort();
    await until("its end", () => vi.getTimerCount() === 0, 1_000);
  } finally {
    vi.useRealTimers();
  }
});

test("the alarm is set to the first time-out, and moves when an earlier one is added", async () => {
  expect(host.state.alarm).toBeNull();
  const later = Date.now() + 3_600_000;
  await host.call("promise.create", promise("later", { timeoutAt: later }));
  expect(host.state.alarm).toBe(later);
  await host.call("promise.create", promise("soon", { timeoutAt: later - 60_000 }));
  expect(host.state.alarm).toBe(later - 60_000);
  await host.call("promise.create", promise("last", { timeoutAt: later + 60_000 }));
  expect(host.state.alarm).toBe(later - 60_000);
});

test("an alarm whose work cannot be written does not fail but is set again after a second, and does the work once it can be written", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    const timeoutAt = Date.now() + 1_000;
    await host.call("promise.create", promise("due", { timeoutAt }));
    host.state.isFull = true;
    for (let times = 0; times < 10; times++) {
      expect(host.state.alarm).toBe(timeoutAt + times * 1_000);
      vi.setSystemTime(host.state.alarm as number);
      host.state.alarm = null;
      await host.server.alarm();
    }
    host.state.isFull = false;
    await host.server.alarm();
    const { data } = await (await host.call("promise.get", { id: "due" })).json();
    expect(data.promise.state).toBe("rejected_timedout");
  } finally {
    vi.useRealTimers();
  }
});

test("time-outs beyond one alarm's limit are left to another alarm at once, but at a later time: workerd ignores the same time", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    const timeoutAt = Date.now() + 1_000;
    for (let n = 0; n < 2_500; n++) await host.call("promise.create", promise(`due${n}`, { timeoutAt }));
    vi.setSystemTime(timeoutAt);
    await host.server.alarm();
    expect(host.state.alarm).toBe(timeoutAt + 1);
    vi.setSystemTime(timeoutAt + 1);
    await host.server.alarm();
    expect(host.state.alarm).toBeGreaterThan(timeoutAt);
  } finally {
    vi.useRealTimers();
  }
});

test("a time-out does not wait for a file store that does not answer", async () => {
  let requests = 0;
  const list = () => {
    requests += 1;
    return new Promise<never>(() => {});
  };
  host.restart({ FILES: { list } as never });
  const timeoutAt = Date.now() + 50;
  await host.call("promise.create", promise("due", { timeoutAt }));
  await until("its end", async () => {
    if (host.state.alarm !== null && Date.now() >= host.state.alarm) await host.server.alarm();
    const answer = await host.call("promise.get", { id: "due" });
    return (await answer.text()).includes("rejected_timedout");
  });
  expect(requests).toBe(1);
});

test("an alarm that the platform has dropped is set again when the object wakes", async () => {
  const timeoutAt = Date.now() + 60_000;
  await host.call("promise.create", promise("due", { timeoutAt }));
  host.state.alarm = null;
  host.restart();
  await until("the alarm", () => host.state.alarm === timeoutAt);
});

test("a connection to a replaced instance ends, and the client connects to the new instance", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const over = new AbortController();
  try {
    const namespace = {
      idFromName: () => ({}),
      get: () => ({
        fetch: (url: string | URL | Request, init?: RequestInit) => host.server.fetch(new Request(url, init)),
      }),
    };
    const client = new ResonateClient({ url: "http://resonate", fetch: fetchFrom(namespace) });
    const jobs: string[] = [];
    let connections = 0;
    void client.connections.listen({
      group: "g",
      id: "1",
      signal: over.signal,
      onMessage: (message) => jobs.push(message.kind === "execute" ? message.task.id : ""),
      onConnect: () => {
        connections += 1;
      },
      onDisconnect: () => {},
    });
    await until("the connection", () => connections === 1);
    vi.advanceTimersByTime(60_000);
    await host.call("promise.create", promise("before", { group: "g" }));
    await until("a message", () => jobs.length === 1);
    expect(connections).toBe(1);

    host.restart();
    await host.call("promise.create", promise("after", { group: "g" }));
    // The old instance notices its replacement when it writes the next keep-alive comment, every five seconds.
    vi.advanceTimersByTime(5_000);
    await until("the message of the other instance", () => jobs.includes("after"));
    expect(connections).toBe(2);
  } finally {
    over.abort();
    vi.useRealTimers();
  }
});

test("the key is created once and kept", async () => {
  const key = async () => (await host.server.fetch(new Request("http://resonate/key"))).text();
  const first = await key();
  expect(first.length).toBeGreaterThanOrEqual(32);
  host.restart();
  expect(await key()).toBe(first);
});

test("tables of another schema version are refused with an explanation", () => {
  host.state.storage.sql.exec("UPDATE schemas SET version = 7");
  expect(() => new ObjectServer(host.state)).toThrow(
    "schema version 7, and this version of durable-mcp-edge needs 1: deploy the version that wrote them",
  );
});
