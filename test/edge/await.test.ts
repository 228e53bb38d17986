import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { RemoteStore } from "../../core/jobs/remote-store.ts";
import { awaitSettled } from "../../core/jobs/waiting/waiting.ts";
import { ResonateUnavailable } from "../../core/resonate/connection/failures.ts";
import { until } from "../../testing/stack/program.ts";
import { timer } from "../../tools/timer/timer.ts";
import { type Scene, startScene } from "./support.ts";

let the: Scene;
beforeAll(async () => {
  the = await startScene();
});
afterAll(() => the?.[Symbol.asyncDispose]());
afterEach(() => {
  the.gate.refuseStreams(false);
  the.gate.holdStreams(false);
  the.gate.muteStreams(false);
  for (const kind of ["promise.get", "promise.register_listener"]) the.gate.release(kind);
});

let jobs = 0;
const fires_at = new Date(Date.now() + 3_600_000).toISOString();

async function pendingJobs(count: number): Promise<string[]> {
  const timers = Array.from({ length: count }, () => ({ timer_name: `t${++jobs}`, fires_at }));
  const names = await Promise.all(timers.map((args) => timer.name(args)));
  await Promise.all(timers.map((args, i) => the.store.create(timer, names[i] ?? "", args, Date.now())));
  return names;
}

const settle = (name: string) =>
  the.resonate.call("promise.settle", { id: the.namespace + name, state: "resolved", value: {} });

/** Starts a wait. `settled` fills as promises settle; `pending` resolves to the names that still run. */
function wait(
  names: string[],
  options: { timeout?: number; signal?: AbortSignal; store?: RemoteStore; maxSilenceMs?: number } = {},
) {
  const { timeout = 20_000, signal = new AbortController().signal, store = the.store, ...rest } = options;
  const settled: [string, string | undefined][] = [];
  const pending = awaitSettled(store, names, {
    timeout,
    signal,
    ...rest,
    onSettled: (name, promise) => settled.push([name, promise?.state]),
  });
  return { settled, pending };
}

/** The number of calls of a kind so far. */
const calls = (kind: string) => the.gate.calls.filter((call) => call.kind === kind).length;

test("each name is reported once, however its state was learned, and so is a name that does not exist", async () => {
  const [first = "", second = ""] = await pendingJobs(2);
  await settle(first);
  const before = calls("promise.register_listener");
  const { settled, pending } = wait([first, second, "timer_none", "order-1"]);
  await until("the wait to listen", () => calls("promise.register_listener") === before + 3);
  await settle(second);
  expect(await pending).toEqual([]);
  expect(settled.toSorted()).toEqual([
    ["order-1", undefined],
    ["timer_none", undefined],
    [first, "resolved"],
    [second, "resolved"],
  ]);
});

test("a wait ends without an error when its caller leaves", async () => {
  const names = await pendingJobs(1);
  const leaving = new AbortController();
  const before = calls("promise.register_listener");
  const { settled, pending } = wait(names, { signal: leaving.signal });
  await until("the wait to listen", () => calls("promise.register_listener") > before);
  leaving.abort();
  expect([await pending, settled]).toEqual([names, []]);
  await until("its connection to be closed", () => the.gate.streams.open === 0);
});

test("a wait whose caller has already left makes no call", async () => {
  const names = await pendingJobs(1);
  const before = [the.gate.calls.length, the.gate.streams.opened];
  expect(await wait(names, { signal: AbortSignal.abort() }).pending).toEqual(names);
  expect([the.gate.calls.length, the.gate.streams.opened]).toEqual(before);
});

describe("a server", () => {
  test("that cannot be reached fails the wait at once", async () => {
    const store = the.storeAt("http://127.0.0.1:9"); // the discard port: nothing listens
    await expect(wait(["timer_tea"], { store }).pending).rejects.toThrow(ResonateUnavailable);
  });

  test("that answered before and stops answering at the end of the wait does not fail it", async () => {
    const names = await pendingJobs(1);
    the.gate.refuseStreams(true);
    const before = calls("promise.get");
    const { pending } = wait(names, { timeout: 5_000 });
    await until("a first read", () => calls("promise.get") > before);
    await the.gate.hold("promise.get"); // the second one is never answered
    expect(await pending).toEqual(names);
  });

  test("that never answers fails the wait when the time is up", async () => {
    const names = await pendingJobs(1);
    for (const kind of ["promise.register_listener", "promise.get"]) void the.gate.hold(kind);
    await expect(wait(names, { timeout: 500 }).pending).rejects.toThrow(ResonateUnavailable);
  });

  test("that goes away and does not come back fails the wait when the time is up", async () => {
    const names = await pendingJobs(1);
    const before = calls("promise.register_listener");
    const { pending } = wait(names, { timeout: 5_000 });
    await until("the wait to listen", () => calls("promise.register_listener") > before);
    await the.gate.close();
    try {
      await expect(pending).rejects.toThrow(ResonateUnavailable);
    } finally {
      await the.gate.open();
    }
  });

  test("that never opens the connection is polled until all promises have settled", async () => {
    const [ended = "", running = ""] = await pendingJobs(2);
    await settle(ended);
    the.gate.holdStreams(true);
    const { settled, pending } = wait([ended, running]);
    await until("the ended job to be found", () => settled.length === 1);
    await settle(running);
    expect(await pending).toEqual([]);
  });

  test("that pushes no notification is read after a quiet while", async () => {
    const names = await pendingJobs(2);
    the.gate.muteStreams(true);
    const before = calls("promise.register_listener");
    const { pending } = wait(names, { maxSilenceMs: 300 });
    await until("the wait to listen", () => calls("promise.register_listener") >= before + 2);
    await Promise.all(names.map(settle));
    expect(await pending).toEqual([]);
  });

  test("that has pushed no notification is read once more when the time is up", async () => {
    const names = await pendingJobs(2);
    the.gate.muteStreams(true);
    const before = calls("promise.register_listener");
    const { settled, pending } = wait(names, { timeout: 5_000 });
    await until("the wait to listen", () => calls("promise.register_listener") >= before + 2);
    await settle(names[0] ?? "");
    expect(await pending).toEqual([names[1]]);
    expect(settled).toEqual([[names[0], "resolved"]]);
  });

  test("that does not accept the listeners is connected to again, and the earlier connection is closed", async () => {
    const names = await pendingJobs(1);
    const { opened } = the.gate.streams;
    const { pending } = wait(names);
    while (the.gate.streams.opened < opened + 3) await the.gate.loseAnswer("promise.register_listener");
    await until("one connection", () => the.gate.streams.open === 1);
    await settle(names[0] ?? "");
    expect(await pending).toEqual([]);
  });

  test("that loses connections repeatedly is connected to each time", async () => {
    const names = await pendingJobs(2);
    const [first = "", second = ""] = names;
    const { settled, pending } = wait(names);
    const { opened } = the.gate.streams;
    for (let lost = 1; lost <= 3; lost++) {
      await until("a connection", () => the.gate.streams.opened >= opened + lost && the.gate.streams.open === 1);
      if (lost === 2) await settle(first);
      the.gate.cutStreams();
    }
    await settle(second);
    expect(await pending).toEqual([]);
    expect(settled.map(([name]) => name).toSorted()).toEqual(names.toSorted());
  });
});
