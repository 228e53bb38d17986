// The embedded server is killed with SIGKILL at random moments while it works, and started again on the same directory.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Program, run, until } from "../../testing/stack/program.ts";
import { action, connectTo, promise, type Server } from "../contract/server.ts";
import { EMBEDDED } from "../support/resonate.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "resonate-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

async function start(): Promise<{ server: Server; program: Program; kill(): Promise<void> }> {
  const program = run(EMBEDDED, { args: ["--port", "0", "--data", dir] });
  const ready = await until("the server to be ready", () => program.logs().find(({ msg }) => msg === "ready"));
  const stop = async () => program[Symbol.asyncDispose]();
  return { server: connectTo(String(ready.url), stop), program, kill: stop };
}

const LEASE_MS = 600_000;
const value = (id: string) => ({ data: `${id}-${"x".repeat(500)}` });

/** The steps of a job in order. Each of them changes the visible state of the job or of its child. */
const STAGES: ((server: Server, id: string) => Promise<{ status: number }>)[] = [
  (server, id) => server.call("promise.create", promise(id, { group: "g" })),
  (server, id) => server.call("task.acquire", { id, version: 0, pid: "p", ttl: LEASE_MS }),
  (server, id) => server.call("task.fence", { id, version: 1, action: action("promise.create", promise(`${id}:0`)) }),
  (server, id) =>
    server.call("task.suspend", {
      id,
      version: 1,
      actions: [action("promise.register_callback", { awaited: `${id}:0`, awaiter: id })],
    }),
  (server, id) => server.call("promise.settle", { id: `${id}:0`, state: "resolved", value: value(`${id}:0`) }),
  (server, id) => server.call("task.acquire", { id, version: 1, pid: "p", ttl: LEASE_MS }),
  (server, id) =>
    server.call("task.fulfill", {
      id,
      version: 2,
      action: action("promise.settle", { id, state: "resolved", value: value(id) }),
    }),
];

/** The number of stages that the server knows to be done. */
async function stageOf(server: Server, id: string): Promise<number> {
  const [root, child, task] = await Promise.all([
    server.call("promise.get", { id }),
    server.call("promise.get", { id: `${id}:0` }),
    server.call("task.get", { id }),
  ]);
  if (root.status === 404) return 0;
  const childState = child.status === 404 ? "none" : child.data.promise.state;
  if (childState === "resolved") expect(child.data.promise.value).toEqual(value(`${id}:0`));
  if (root.data.promise.state === "resolved") expect(root.data.promise.value).toEqual(value(id));
  const { state, version } = task.data.task;
  const observed = `${root.data.promise.state} ${childState} ${state} ${version}`;
  const stage = [
    "pending none pending 0",
    "pending none acquired 1",
    "pending pending acquired 1",
    "pending pending suspended 1",
    "pending resolved pending 1",
    "pending resolved acquired 2",
    "resolved resolved fulfilled 2",
  ].indexOf(observed);
  if (stage < 0) throw new Error(`${id} is in a state that it cannot be in: ${observed}`);
  return stage + 1;
}

test("after a kill, the server has every acknowledged step and at most the one under way, and jobs continue", async () => {
  /** The number of steps acknowledged before each kill: counted, so that a slow machine proves as much as a fast one. */
  const kills = fc.sample(fc.integer({ min: 60, max: 400 }), 4);
  /** The number of acknowledged steps of each job. */
  const acknowledged = new Map<string, number>();
  let next = 0;

  for (const [i, steps] of [...kills, undefined].entries()) {
    const { server, kill } = await start();
    for (const [id, done] of acknowledged) {
      const stage = await stageOf(server, id);
      const when = `${id}, after kill ${i}, which followed ${kills[i - 1]} steps`;
      expect(stage, when).toBeGreaterThanOrEqual(done);
      expect(stage, when).toBeLessThanOrEqual(done + 1);
      acknowledged.set(id, stage);
    }
    let isStopped = false;
    let progress = 0;
    const { promise: enough, resolve: isEnough } = Promise.withResolvers<void>();
    const work = async (id: string) => {
      for (let stage = acknowledged.get(id) ?? 0; stage < STAGES.length && !isStopped; stage++) {
        acknowledged.set(id, stage);
        const { status } = (await STAGES[stage]?.(server, id)) ?? { status: 0 };
        if (status !== 200) throw new Error(`step ${stage} of ${id} was answered with ${status}`);
        acknowledged.set(id, stage + 1);
        if (++progress === steps) isEnough();
      }
    };
    const unfinished = [...acknowledged].flatMap(([id, done]) => (done < STAGES.length ? [id] : []));
    if (steps === undefined) {
      await Promise.all(unfinished.map(work));
      for (const id of acknowledged.keys()) expect(await stageOf(server, id)).toBe(STAGES.length);
      await kill();
      break;
    }
    const clients = Array.from({ length: 16 }, async () => {
      try {
        for (let id = unfinished.pop(); id !== undefined; id = unfinished.pop()) await work(id);
        while (!isStopped) await work(`job${next++}`);
      } catch (error) {
        // The kill breaks the connection. Any error before it is a failure.
        if (!isStopped) throw error;
      }
    });
    const killed = enough.then(() => {
      isStopped = true;
      return kill();
    });
    await Promise.all([...clients, killed]);
  }
  expect(acknowledged.size).toBeGreaterThan(20);
});

test("time-outs that fell due while the server was down are handled as soon as it is back", async () => {
  let timeoutAt = 0;
  {
    const { server, kill } = await start();
    timeoutAt = Date.now() + 2_000;
    await server.call("promise.create", promise("timer", { group: "g" }));
    await server.call("task.acquire", { id: "timer", version: 0, pid: "p", ttl: LEASE_MS });
    const tags = { "resonate:timer": "true", "resonate:target": "poll://any@default" };
    await server.call("promise.create", promise("timer:0", { timeoutAt, tags }));
    const register = action("promise.register_callback", { awaited: "timer:0", awaiter: "timer" });
    const { status } = await server.call("task.suspend", { id: "timer", version: 1, actions: [register] });
    expect(status).toBe(200); // asleep: the timer has not fallen due yet
    await server.call("promise.create", promise("leased", { group: "g" }));
    await server.call("task.acquire", { id: "leased", version: 0, pid: "p", ttl: 500 });
    await kill();
  }
  await until("the deadline", () => Date.now() > timeoutAt);
  const { server, kill } = await start();
  using worker = await server.poll("g", "1");
  // The state machine by itself would repeat the dispatches only after 30 seconds. A busy machine may take some seconds.
  const dispatches = [await worker.next(15_000), await worker.next(15_000)];
  expect(dispatches.map(({ data }) => data.task).sort((a, b) => (a.id < b.id ? -1 : 1))).toEqual([
    { id: "leased", version: 1 },
    { id: "timer", version: 1 },
  ]);
  const { data } = await server.call("promise.get", { id: "timer:0" });
  expect(data.promise).toMatchObject({ state: "resolved", settledAt: timeoutAt });
  await kill();
});

test("a dispatch waits for a worker, even across a restart, and goes to another worker if the first one leaves", async () => {
  {
    const { server, kill } = await start();
    for (const id of ["free", "taken"]) await server.call("promise.create", promise(id, { group: "g" }));
    await server.call("task.acquire", { id: "taken", version: 0, pid: "p", ttl: LEASE_MS });
    await kill();
  }
  const { server, kill } = await start();
  const dispatched = { kind: "execute", data: { task: { id: "free", version: 0 } } };
  {
    using first = await server.poll("g", "1");
    expect(await first.next()).toMatchObject(dispatched);
  }
  using second = await server.poll("g", "2");
  expect(await second.next()).toMatchObject(dispatched);
  expect((await server.call("task.acquire", { id: "free", version: 0, pid: "p", ttl: LEASE_MS })).status).toBe(200);
  using third = await server.poll("g", "3");
  await server.call("promise.create", promise("more", { group: "g" }));
  await until("the next dispatch", () => second.inbox.length + third.inbox.length > 0);
  expect([...second.inbox, ...third.inbox].map(({ data }) => data.task.id)).toEqual(["more"]);
  await kill();
});

test("a listener that reconnects after a restart of the server is notified", async () => {
  {
    const { server, kill } = await start();
    await server.call("promise.create", promise("news"));
    await server.call("promise.register_listener", { awaited: "news", address: "poll://uni@edge/1" });
    await kill();
  }
  const { server, kill } = await start();
  using edge = await server.poll("edge", "1");
  await server.call("promise.settle", { id: "news", state: "resolved", value: { data: "MQ==" } });
  expect(await edge.next()).toMatchObject({
    kind: "unblock",
    data: { promise: { id: "news", value: { data: "MQ==" } } },
  });
  await kill();
});

test("SIGTERM ends it at once and cleanly, with connections open", async () => {
  const { server, program } = await start();
  using _ = await server.poll("g", "1");
  await server.call("promise.create", promise("kept"));
  program.signal("SIGTERM");
  expect(await program.exited).toMatchObject({ exitCode: 0 });
  const again = await start();
  expect((await again.server.call("promise.get", { id: "kept" })).status).toBe(200);
  await again.kill();
});
