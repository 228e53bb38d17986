import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { promise } from "../../../test/contract/server.ts";
import { TestObject, turns } from "../../../test/support/object/test-object.ts";
import { until } from "../../../testing/stack/program.ts";

let host: TestObject;
beforeEach(() => {
  vi.spyOn(console, "error").mockImplementation(() => {});
  host = new TestObject();
});
afterEach(() => vi.restoreAllMocks());

test("jobs without a connected worker cost nothing while they wait, and are dispatched in order when one connects", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    const timeoutAt = Date.now() + 30 * 86_400_000;
    for (const id of ["first", "second", "third"]) {
      await host.call("promise.create", promise(id, { group: "g", timeoutAt }));
      vi.setSystemTime(Date.now() + 1_000);
    }
    await host.pass(600_000);
    const { writes } = host.state;
    await host.pass(12 * 3_600_000);
    expect(host.state.writes).toBe(writes);
    await host.call("promise.create", promise("last", { group: "g", timeoutAt }));
    host.restart();
    const stream = await host.listen("g");
    await until("all of them", () => stream.text.includes("third"));
    expect(stream.text.match(/first|second|third|last/g)).toEqual(["last", "first", "second", "third"]);
    // They are dispatched again to a connected worker that does not claim them.
    await host.pass(31_000);
    await until("all of them again", () => stream.text.match(/first|second|third/g)?.length === 6);
    stream.leave();
  } finally {
    vi.useRealTimers();
  }
});

test("an unclaimed job is dispatched again less and less often, and at the first interval again after a claim", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    await host.call("promise.create", promise("job", { group: "g", timeoutAt: Date.now() + 86_400_000 }));
    const stream = await host.listen("g");
    const times = () => stream.text.match(/"execute"/g)?.length ?? 0;
    await until("the first", () => times() === 1);
    await host.pass(31_000);
    await until("the second", () => times() === 2);
    await host.pass(12 * 3_600_000);
    expect(times()).toBeGreaterThan(15);
    expect(times()).toBeLessThan(25);
    const before = times();
    expect((await host.call("task.acquire", { id: "job", version: 0, pid: "p", ttl: 1_000 })).status).toBe(200);
    await host.pass(62_000);
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
    let requests = 0;
    const runner = {
      fetch: async () => {
        requests += 1;
        return Response.json({ isKnown: false });
      },
    };
    host.restart({ RUNNER: { idFromName: () => runner, get: () => runner } });
    await host.call("promise.create", promise("odd", { group: "workers", timeoutAt: Date.now() + 30 * 86_400_000 }));
    await until("the first request", () => requests === 1);
    await host.pass(120_000);
    expect(requests).toBeGreaterThanOrEqual(3);
    await host.pass(10 * 86_400_000);
    expect(requests).toBeLessThanOrEqual(10 * 24 + 12);
    await host.call("promise.create", promise("another group's", { group: "gpu" }));
    const before = requests;
    host.restart({ RUNNER: { idFromName: () => runner, get: () => runner } });
    await host.pass(31_000);
    expect(requests).toBe(before);
    const stream = await host.listen("workers");
    await until("the job", () => stream.text.includes("odd"));
    stream.leave();
  } finally {
    vi.useRealTimers();
  }
});

test("a runner receives news while it runs a task and a while longer, and its next task has another address for news", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    const runs: { news: string; end(): void }[] = [];
    const news: string[] = [];
    const runner = {
      fetch: async (url: string, { body }: { body: string }) => {
        if (url.endsWith("/news")) {
          news.push(
            ...JSON.parse(body).map((message: { data: { promise: { id: string } } }) => message.data.promise.id),
          );
          return new Response();
        }
        const { promise: run, resolve: end } = Promise.withResolvers<void>();
        runs.push({ news: JSON.parse(body).newsAddress, end });
        await run;
        return Response.json({ isKnown: true });
      },
    };
    host.restart({ RUNNER: { idFromName: () => runner, get: () => runner } });
    const settles = async (id: string, address: string) => {
      await host.call("promise.create", promise(id, { group: "elsewhere" }));
      await host.call("promise.register_listener", { awaited: id, address });
      await host.call("promise.settle", { id, state: "resolved", value: {} });
      await turns(10);
    };
    await host.call("promise.create", promise("job", { group: "workers" }));
    await until("the runner", () => runs.length === 1);
    const [first] = runs;
    if (!first) expect.fail("no runner was woken");
    await settles("meanwhile", first.news);
    expect(news).toEqual(["meanwhile"]);
    first.end();
    await settles("shortly after", first.news);
    expect(news).toEqual(["meanwhile", "shortly after"]);
    vi.setSystemTime(Date.now() + 11_000);
    await settles("when it may be gone", first.news);
    expect(news.length).toBe(2);
    await host.call("promise.create", promise("job:next", { group: "workers" }));
    await until("the runner", () => runs.length === 2);
    expect(runs[1]?.news).not.toBe(first.news);
    runs[1]?.end();
  } finally {
    vi.useRealTimers();
  }
});

test("a job that wakes a container is reported to the cron trigger for a while, although its worker is connected", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    const container = { fetch: async () => new Response() };
    host.restart({
      WORKER: { idFromName: () => container, get: () => container },
      RUNS_IN: "container",
    });
    const isWaiting = async (group: string) => {
      const response = await host.server.fetch(new Request(`http://resonate/waiting/${group}`));
      return (await response.json()).isWaiting;
    };
    expect(await isWaiting("workers")).toBe(false);
    await host.call("promise.create", promise("job", { group: "workers" }));
    const worker = await host.listen("workers");
    vi.setSystemTime(Date.now() + 60_000);
    expect([await isWaiting("workers"), await isWaiting("others")]).toEqual([true, false]);
    vi.setSystemTime(Date.now() + 60_000);
    expect(await isWaiting("workers")).toBe(false);
    worker.leave();
  } finally {
    vi.useRealTimers();
  }
});
