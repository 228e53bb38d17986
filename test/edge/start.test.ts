import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { retryJob } from "../../core/jobs/retry-job.ts";
import { newestGeneration, startJob } from "../../core/jobs/start.ts";
import { ResonateClient } from "../../core/resonate/connection/client.ts";
import { withGeneration } from "../../core/resonate/ids.ts";
import { timer } from "../../tools/timer/timer.ts";
import { type Scene, startScene } from "./support.ts";

let the: Scene;
beforeAll(async () => {
  the = await startScene();
});
afterAll(() => the?.[Symbol.asyncDispose]());

let jobs = 0;
const now = Date.now();
const fires_at = new Date(now + 3_600_000).toISOString();
const nextTimer = () => ({ timer_name: `t${++jobs}`, fires_at });
type Args = ReturnType<typeof nextTimer>;

/** Makes `ended` generations of a job that ended without a result, and with `last` a next one in that state. */
async function history(args: Args, ended: number, last?: "pending" | "resolved") {
  const base = await timer.name(args);
  for (let n = 1; n <= ended; n++) {
    const name = withGeneration(base, n);
    await the.store.create(timer, name, args, now);
    await the.store.cancel(name);
  }
  if (!last) return;
  const id = the.namespace + withGeneration(base, ended + 1);
  await the.store.create(timer, withGeneration(base, ended + 1), args, now);
  if (last === "resolved") await the.resonate.call("promise.settle", { id, state: "resolved", value: {} });
}

/** Runs `work`. Returns its result and the kinds of the calls that it made. */
async function counted<T>(work: () => Promise<T>) {
  const before = the.gate.calls.length;
  const result = await work();
  return { result, calls: the.gate.calls.slice(before).map(({ kind }) => kind) };
}

describe("a start is one call", () => {
  test.each([
    ["new", 0, undefined],
    ["running", 0, "pending"],
    ["complete", 0, "resolved"],
  ] as const)("for a job that is %s", async (_what, ended, last) => {
    const args = nextTimer();
    await history(args, ended, last);
    const { result, calls } = await counted(() => startJob(the.store, timer, args, now));
    expect([result.name, calls]).toEqual([await timer.name(args), ["promise.create"]]);
  });
});

describe("a start of a job with generations that ended without a result:", () => {
  test.each(
    [1, 2, 3, 4, 5, 7, 8, 9, 20, 33].flatMap((ended) => [
      { ended, last: undefined },
      { ended, last: "pending" as const },
      { ended, last: "resolved" as const },
    ]),
  )("$ended of them and then one $last: finds the right generation in few reads", async ({ ended, last }) => {
    const args = nextTimer();
    await history(args, ended, last);
    const { result, calls } = await counted(() => startJob(the.store, timer, args, now));
    const base = await timer.name(args);
    expect(result.name).toBe(withGeneration(base, ended + 1));
    expect(result.state).toBe(last ?? "pending");
    expect(calls.filter((kind) => kind === "promise.get").length).toBeLessThanOrEqual(2 * Math.log2(ended) + 2);
    expect(calls.filter((kind) => kind === "promise.create").length).toBe(last ? 1 : 2);

    const first = (await the.store.get(base)) ?? expect.fail("the first generation is there");
    const newest = await newestGeneration(the.store, base, first);
    expect([newest.generation, newest.promise.name]).toEqual([ended + 1, result.name]);
  });

  test("finds the newest, which an operator's retry made, if its definition does not restart it", async () => {
    const once = { ...timer, restarts: () => false };
    const store = the.storeAt(the.gate.url, [once]);
    const start = (args: Args) => startJob(store, once, args, now);
    const args = nextTimer();
    const base = await timer.name(args);
    await history(args, 1);
    expect(await start(args)).toMatchObject({ name: base, state: "rejected_canceled" });
    const client = new ResonateClient({ url: the.resonate.url, token: process.env.RESONATE_TOKEN });
    await retryJob({ client, namespace: the.namespace }, base);
    const again = withGeneration(base, 2);
    expect(await start(args)).toMatchObject({ name: again, state: "pending" });
    await the.resonate.call("promise.settle", { id: the.namespace + again, state: "resolved", value: {} });
    expect(await start(args)).toMatchObject({ name: again, state: "resolved" });
  });

  test("20 concurrent starts give one new generation", async () => {
    const args = nextTimer();
    await history(args, 3);
    const starts = await Promise.all(Array.from({ length: 20 }, () => startJob(the.store, timer, args, now)));
    expect(new Set(starts.map(({ name }) => name))).toEqual(new Set([`${await timer.name(args)}~4`]));
  });
});
