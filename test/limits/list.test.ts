/** A list of a caller's jobs costs neither a search of other callers' promises nor a page of results. */
import { Codec } from "@resonatehq/sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { callerOf } from "../../core/author/caller.ts";
import { bearerBindings, callerAt, type TestCaller } from "../auth/support.ts";
import { type Gate, startGate } from "../support/gate.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { type Stack, startStack } from "../support/stack.ts";

let resonate: Resonate;
let gate: Gate;
beforeAll(async () => {
  resonate = await startResonate();
  gate = await startGate(resonate.url);
});
afterAll(async () => {
  await gate?.[Symbol.asyncDispose]();
  await resonate?.[Symbol.asyncDispose]();
});

const serve = (bindings: Record<string, string>) =>
  startStack({ resonate, workers: 0, bindings: { RESONATE_URL: gate.url, ...bindings } });
const set = (caller: TestCaller, timer_name: string) => caller.call("set_timer", { timer_name, seconds: 3_600 });
const names = ({ jobs }: { jobs: { job_name: string }[] }) => jobs.map(({ job_name }) => job_name);

/** The calls to the Resonate server during `work`, by kind. */
async function counted(work: () => Promise<unknown>) {
  const before = gate.calls.length;
  await work();
  return Object.groupBy(gate.calls.slice(before), ({ kind }) => kind);
}

async function all(caller: TestCaller, args: object = {}): Promise<string[]> {
  const found: string[] = [];
  for (let cursor: string | undefined; ;) {
    const page = await caller.call("list_jobs", { ...args, ...(cursor !== undefined && { cursor }) });
    found.push(...names(page));
    cursor = page.next_cursor;
    if (cursor === undefined) return found;
  }
}

describe("in a deployment that distinguishes callers", () => {
  let stack: Stack;
  let ada: TestCaller;
  let bob: TestCaller;
  beforeAll(async () => {
    stack = await startStack({
      resonate,
      workers: 0,
      beside: { RATE_LIMIT: "90" },
      bindings: {
        RESONATE_URL: gate.url,
        ...bearerBindings({
          ada: "static-token-of-ada",
          bob: "static-token-of-bob",
          cy: "static-token-of-cy",
          dora: "static-token-of-dora",
          fay: "static-token-of-fay",
        }),
      },
    });
    [ada, bob] = [callerAt(stack.url, "static-token-of-ada"), callerAt(stack.url, "static-token-of-bob")];
  });
  afterAll(() => stack?.[Symbol.asyncDispose]());

  test("a list is read without a search, however many jobs others have", async () => {
    for (let n = 0; n < 5; n++) await set(ada, `one after the other ${n}`);
    await Promise.all(Array.from({ length: 60 }, (_, n) => set(bob, `his ${n}`)));
    const calls = await counted(async () => {
      const page = await ada.call("list_jobs", { limit: 3 });
      expect(names(page)).toEqual([4, 3, 2].map((n) => `timer_one after the other ${n}`));
    });
    expect(Object.keys(calls)).toEqual(["promise.get"]);
    expect(calls["promise.get"]?.length).toBeLessThan(12);
    expect(await all(ada, { limit: 2 })).toEqual([4, 3, 2, 1, 0].map((n) => `timer_one after the other ${n}`));
  });

  test("jobs that are started concurrently at two isolates are all listed, each once", async () => {
    const [here, there] = [callerAt(stack.beside, "static-token-of-cy"), ada];
    const mine = await Promise.all(
      Array.from({ length: 40 }, (_, n) => set(n % 2 === 0 ? here : there, `at once ${n}`)),
    );
    expect(mine.length).toBe(40);
    const odd = Array.from({ length: 20 }, (_, n) => `timer_at once ${2 * n + 1}`);
    const even = Array.from({ length: 20 }, (_, n) => `timer_at once ${2 * n}`);
    expect((await all(here, { limit: 7 })).sort()).toEqual(even.sort());
    expect(
      (await all(callerAt(stack.beside, "static-token-of-ada"), { limit: 100 }))
        .filter((name) => name.includes("at once"))
        .sort(),
    ).toEqual(odd.sort());
  });

  test("a job that is started again is listed once", async () => {
    for (let n = 0; n < 5; n++) await set(ada, "again");
    expect((await all(ada, { limit: 100 })).filter((name) => name === "timer_again")).toEqual(["timer_again"]);
  });

  test("a list by status and kind is complete, including jobs whose end nobody reported", async () => {
    const dora = callerAt(stack.url, "static-token-of-dora");
    for (let n = 0; n < 30; n++) await set(dora, `d${n}`);
    const { key } = await callerOf("dora");
    for (let n = 0; n < 30; n += 3) {
      const value = new Codec().encode("ended");
      await resonate.call("promise.settle", { id: `${stack.namespace}${key}timer_d${n}`, state: "resolved", value });
    }
    const ended = await all(dora, { status: "complete", kind: "timer", limit: 4 });
    expect(ended).toEqual(Array.from({ length: 10 }, (_, i) => `timer_d${27 - 3 * i}`));
    expect((await all(dora, { status: "running", limit: 7 })).length).toBe(20);
    expect(await all(dora, { kind: "weather_data" })).toEqual([]);
  });

  test("a list by a rare status reads each running job once at most, and counts these reads against the limit", async () => {
    const fay = callerAt(stack.url, "static-token-of-fay");
    const month = (n: number) => ({ latitude: 10 + n / 100, longitude: 1, year: 2013, month: 5 });
    await Promise.all(Array.from({ length: 40 }, (_, n) => fay.call("start_gathering", month(n))));
    const calls = await counted(() => fay.call("list_jobs", { status: "failed", limit: 100 }));
    expect(calls["promise.get"]?.length).toBeLessThan(50);
    // If a list counted as one request regardless of its reads, the limit would allow it here.
    const there = callerAt(stack.beside, "static-token-of-fay");
    for (let n = 0; n < 6; n++) await there.call("list_jobs", { status: "failed", limit: 100 });
    expect(await there.call("list_jobs", { status: "failed" }).catch(() => "no")).toBe("no");
  });

  test("a made-up cursor is refused, or starts the list at its position", async () => {
    for (const cursor of ["1.2.3.4", "x", `${"9".repeat(17)} timer_a`])
      await expect(ada.call("list_jobs", { cursor })).rejects.toThrow("cursor");
    expect((await ada.call("list_jobs", { cursor: "1 timer_nowhere" })).jobs).toEqual([]);
  });

  test("a page of very long names ends at the bound of an answer, and the next page continues", async () => {
    const long = Array.from({ length: 100 }, (_, n) => `${String(n).padStart(3, "0")} ${"é".repeat(95)}`);
    await Promise.all(long.map((name) => set(bob, name)));
    const page = await bob.call("list_jobs", { limit: 100 });
    expect(JSON.stringify(page).length * 2).toBeLessThan(50_000);
    expect(page.next_cursor).toBeDefined();
    const found = await all(bob, { limit: 100 });
    expect(found).toEqual(expect.arrayContaining(long.map((name) => `timer_${name}`)));
  });
});

test("in a deployment without callers, a search never asks for more results than fit", async () => {
  await using stack = await serve({});
  const anyone = callerAt(stack.url, "");
  for (let n = 0; n < 30; n++) {
    await set(anyone, `large ${n}`);
    const value = new Codec().encode("x".repeat(300_000));
    await resonate.call("promise.settle", { id: `${stack.namespace}timer_large ${n}`, state: "resolved", value });
  }
  const calls = await counted(async () => expect((await all(anyone, { limit: 10 })).length).toBe(30));
  for (const { bytes } of calls["promise.search"] ?? []) expect(bytes).toBeLessThan(6_000_000);
});
