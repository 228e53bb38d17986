// The rules that differ between releases of the server. The embedded server follows those of 0.9.8.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { action, promise, type Release, releaseOf, type Server, startServer, unique } from "./server.ts";

let server: Server;
let release: Release;
beforeAll(async () => {
  server = await startServer();
  release = await releaseOf(server);
});
afterAll(() => server[Symbol.asyncDispose]());

const HOUR_MS = 3_600_000;

/** The status of a request that 0.9.8 accepts and 0.10 refuses as malformed. */
const statusByRelease = () => (release === "0.10" ? 400 : 200);
const create = (id: string, options?: Parameters<typeof promise>[1]) =>
  server.call("promise.create", promise(id, options));

describe("an id", () => {
  test.each<[string, Record<string, string>]>([
    ["an origin with a colon", { "resonate:origin": "ID" }],
    ["an origin that is not its prefix", { "resonate:origin": "another" }],
    ["a branch that is not its prefix", { "resonate:branch": "another" }],
    ["a branch that is longer than it", { "resonate:branch": "ID.1" }],
    ["a parent that is not its prefix", { "resonate:parent": "another" }],
    ["a prefix with a dot", { "resonate:prefix": "a.b" }],
  ])("with %s is accepted by 0.9.8 only", async (_, tags) => {
    const id = `${unique("origin")}:1`;
    const named = Object.fromEntries(Object.entries(tags).map(([tag, value]) => [tag, value.replace("ID", id)]));
    expect((await create(id, { tags: named })).status).toBe(statusByRelease());
  });

  test("whose origin is its part before the first colon is accepted by all releases", async () => {
    const origin = unique("with.dots");
    const tags = { "resonate:origin": origin, "resonate:branch": origin, "resonate:parent": origin };
    expect((await create(`${origin}:1:2`, { tags })).status).toBe(200);
  });

  test.each([
    ["of a schedule with a colon", `${unique("schedule")}:1`, { "resonate:target": "poll://any@none" }],
    ["of a schedule of promises without a target", unique("schedule"), {}],
  ])("%s is accepted by 0.9.8 only", async (_, id, promiseTags) => {
    const schedule = {
      id,
      cron: "0 0 1 1 *",
      promiseId: unique("p"),
      promiseTimeout: 1_000,
      promiseParam: {},
      promiseTags,
    };
    expect((await server.call("schedule.create", schedule)).status).toBe(statusByRelease());
    await server.call("schedule.delete", { id });
  });
});

describe("the tag resonate:delay", () => {
  test.each([
    ["that is no number", () => "?", true],
    ["of a time after the deadline", () => String(Date.now() + 2 * HOUR_MS), true],
    ["without a target", () => String(Date.now()), false],
  ])("%s is refused by 0.10", async (_, delay, isAddressed) => {
    const options = { timeoutAt: Date.now() + HOUR_MS, tags: { "resonate:delay": delay() } };
    const { status } = await create(unique("delay"), { ...options, ...(isAddressed && { group: unique("g") }) });
    expect(status).toBe(statusByRelease());
  });

  test("is refused by 0.10 on a task that is acquired at its creation", async () => {
    const promiseData = promise(unique("acquired"), {
      group: unique("g"),
      tags: { "resonate:delay": String(Date.now()) },
    });
    const data = { pid: "p", ttl: 1_000, action: action("promise.create", promiseData) };
    expect((await server.call("task.create", data)).status).toBe(statusByRelease());
  });

  test("delays the first dispatch on the embedded server", async () => {
    const group = unique("g");
    using poll = await server.poll(group, "1");
    const [delayed, prompt] = [unique("delayed"), unique("prompt")];
    await create(delayed, { group, tags: { "resonate:delay": String(Date.now() + 1_000) } });
    await create(prompt, { group });
    const order = [await poll.next(), await poll.next()].map(({ data }) => data.task.id);
    expect(order).toEqual(release === "embedded" ? [prompt, delayed] : expect.arrayContaining([delayed, prompt]));
  });
});

describe("a request about two jobs", () => {
  /** The ids of two jobs whose tasks are acquired. */
  async function acquiredJobs(): Promise<[string, string]> {
    const ids: [string, string] = [unique("one"), unique("two")];
    for (const id of ids) {
      await create(id, { group: unique("g") });
      await server.call("task.acquire", { id, version: 0, pid: "p", ttl: 60_000 });
    }
    return ids;
  }

  test("to await one in the other is accepted by 0.9.8 only", async () => {
    const [awaiter, awaited] = await acquiredJobs();
    expect((await server.call("promise.register_callback", { awaited, awaiter })).status).toBe(statusByRelease());
    const actions = [action("promise.register_callback", { awaited, awaiter })];
    expect((await server.call("task.suspend", { id: awaiter, version: 1, actions })).status).toBe(statusByRelease());
    expect((await server.call("task.get", { id: awaiter })).data.task.state).toBe(
      release === "0.10" ? "acquired" : "suspended",
    );
  });

  test("to keep both with one heartbeat is accepted by 0.9.8 only, as is an empty heartbeat", async () => {
    const tasks = (await acquiredJobs()).map((id) => ({ id, version: 1 }));
    const beat = async (beating: object[]) =>
      (await server.call("task.heartbeat", { pid: "p", tasks: beating })).status;
    expect(await beat(tasks)).toBe(statusByRelease());
    expect(await beat([])).toBe(statusByRelease());
    for (const task of tasks) expect(await beat([task])).toBe(200);
  });
});

test("a promise without a target times out by itself, but on 0.10 only when it is read", async () => {
  const lot = unique("lot");
  const [addressed, plain] = [unique("addressed"), unique("plain")];
  const timeoutAt = Date.now() + 100;
  await create(plain, { timeoutAt, tags: { lot } });
  await create(addressed, { timeoutAt: timeoutAt + 1, group: unique("g"), tags: { lot } });
  const timedOut = async (): Promise<string[]> => {
    const { data } = await server.call("promise.search", { tags: { lot }, state: "rejected_timedout" });
    return data.promises.map(({ id }: { id: string }) => id);
  };
  const due = release === "0.10" ? [addressed] : [addressed, plain];
  await until("what falls due by itself", async () => (await timedOut()).length >= due.length);
  expect(await timedOut()).toEqual(due);
  expect((await server.call("promise.get", { id: plain })).data.promise.state).toBe("rejected_timedout");
});
