/** The record of a caller's jobs in its object, with a Resonate server in this process. */
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { startedJob } from "../../core/jobs/caller-record.ts";
import { reservationFor, tagOf } from "../../core/jobs/reservation.ts";
import { childOf, encodeValue } from "../../core/resonate/codec.ts";
import { cleanUpId, storedMarkId } from "../../core/resonate/ids.ts";
import { resultOf } from "../../core/resonate/object-calls.ts";
import { STORED_HEADER } from "../../core/resonate/size.ts";
import { BEGAN, deployCaller, KEY, MINUTE, moveClock } from "../../test/support/caller-deployment.ts";

const RUNS = 60 * Number(process.env.FUZZ_TIMES ?? 1);

moveClock();

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("start" as const), count: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("end" as const), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("die" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("wait" as const) }) },
);

test(
  "in any history a start is refused when and only when the limit is reached, even when ends are not reported",
  {
    timeout: 300_000,
  },
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 60, size: "max" }),
        fc.integer({ min: 2, max: 30 }),
        async (steps, most) => {
          vi.setSystemTime(BEGAN);
          const { start, end, isPending, restart } = deployCaller(most);
          const jobs = new Map<string, number>();
          const dead: { count: number; until: number }[] = [];
          for (const [n, one] of steps.entries()) {
            const name = `timer_${n}`;
            const running = [...jobs].filter(([job]) => isPending(job));
            const used = running.reduce((sum, [, count]) => sum + count, 0);
            const lost = dead.filter(({ until }) => Date.now() <= until).reduce((sum, { count }) => sum + count, 0);
            if (one.do === "restart") restart();
            else if (one.do === "wait") vi.advanceTimersByTime(31_000);
            else if (one.do === "end") {
              const [job] = running[one.which % Math.max(1, running.length)] ?? [];
              if (job !== undefined) await end(job);
            } else if (one.do === "die") {
              const isTaken = (await start(name, 1, true)) === "reserved";
              if (isTaken) dead.push({ count: 1, until: Date.now() + 30_000 });
            } else {
              const answer = await start(name, one.count);
              if (answer !== "full") jobs.set(name, one.count);
              expect([n, answer]).toEqual([n, used + lost + one.count > most ? "full" : "reserved"]);
            }
          }
        },
      ),
      { numRuns: RUNS },
    );
  },
);

test("jobs that stay open after their expected end do not hide from a start which others have ended", async () => {
  const { start, create, end } = deployCaller(100);
  for (let n = 0; n < 50; n++) {
    await start(`timer_stuck${n}`, 1, true);
    await create(`timer_stuck${n}`, tagOf(reservationFor({ duration: 10 * MINUTE, now: BEGAN, count: 1 })), 60);
  }
  vi.advanceTimersByTime(20 * MINUTE);
  for (let n = 0; n < 50; n++) await start(`timer_${n}`);
  for (let n = 0; n < 50; n++) await end(`timer_${n}`);
  vi.advanceTimersByTime(1_000);
  // A start looks at 40 jobs.
  expect([await start("timer_next"), await start("timer_next")]).toEqual(["full", "reserved"]);
});

describe("the stored bytes of jobs that do not state them", () => {
  const MOST = 500_000_000;
  const begin = async (bindings = {}) => {
    const deployed = deployCaller(0, bindings);
    const { object, create, sim } = deployed;
    const startedAt = Date.now();
    /** Starts a job that has 1,000 bytes of arguments. */
    const start = async (name: string) => {
      const reservation = reservationFor({ duration: 10 * MINUTE, now: startedAt, count: 1 });
      const times = { startedAt, settledAt: null, due: startedAt + 10 * MINUTE };
      const job = { id: KEY + name, kind: "timer", state: "pending" as const, ...times, ...reservation };
      const { answer } = await object.reserve(KEY, { ...job, bytes: 1_000, labels: [] }, { jobs: 0, bytes: MOST });
      await create(name, tagOf(reservation));
      return resultOf(answer);
    };
    const mark = (name: string, n: number) => sim.send("promise.create", childOf(storedMarkId(KEY + name, n), 0).data);
    /** Ends a job, and reports that to the object. */
    const end = async (name: string, state: "rejected_canceled" | "rejected_timedout") => {
      if (state === "rejected_canceled") await sim.send("promise.settle", { id: KEY + name, state, value: {} });
      else vi.advanceTimersByTime(11 * MINUTE);
      await object.note([startedJob(sim.get(KEY + name) as never, KEY)], true);
    };
    return { ...deployed, start, mark, end, stored: () => object.stored() };
  };

  test.each(["rejected_canceled", "rejected_timedout"] as const)(
    "%s: the job's marks count at its end",
    async (state) => {
      const { start, mark, end, stored } = await begin();
      await start("timer_a");
      expect(await stored()).toBeLessThan(3_000);
      await mark("timer_a", 1);
      await mark("timer_a", 4);
      await end("timer_a", state);
      expect(await stored()).toBeGreaterThan(4_000_000);
      expect(await stored()).toBeLessThan(4_300_000);
    },
  );

  test("a later start counts what a clean-up has written, until the clean-up has ended", async () => {
    const { sim, start, mark, end, stored } = await begin();
    await start("timer_a");
    await sim.send("promise.create", childOf(cleanUpId(`${KEY}timer_a`), Date.now() + 60 * MINUTE).data);
    await end("timer_a", "rejected_canceled");
    for (const n of [1, 4]) {
      await mark("timer_a", n);
      vi.advanceTimersByTime(2 * MINUTE);
      await start(`timer_next${n}`);
      expect(await stored()).toBeGreaterThan(262_144 * 2 ** n);
    }
    await sim.send("promise.settle", { id: cleanUpId(`${KEY}timer_a`), state: "resolved", value: {} });
    vi.advanceTimersByTime(2 * MINUTE);
    await start("timer_over");
    await stored();
    await mark("timer_a", 6);
    vi.advanceTimersByTime(2 * MINUTE);
    await start("timer_last");
    expect(await stored()).toBeLessThan(5_000_000);
  });

  test("the size that a clean-up states at its end is the one that counts", async () => {
    const { sim, start, end, stored } = await begin();
    await start("timer_a");
    const cleanUp = cleanUpId(`${KEY}timer_a`);
    await sim.send("promise.create", childOf(cleanUp, Date.now() + 60 * MINUTE).data);
    await end("timer_a", "rejected_canceled");
    const before = await stored();
    const value = { ...encodeValue({ steps: 1 }), headers: { [STORED_HEADER]: "123456" } };
    await sim.send("promise.settle", { id: cleanUp, state: "resolved", value });
    vi.advanceTimersByTime(2 * MINUTE);
    await start("timer_next");
    expect((await stored()) - before).toBe(123_456 + 1_000);
  });

  test("running jobs that could hold more than is left are looked at, and what they hold refuses the next start", async () => {
    const { start, mark, state } = await begin();
    for (let n = 0; n < 8; n++) await start(`timer_${n}`);
    for (let n = 0; n < 8; n++) for (const each of [1, 8]) await mark(`timer_${n}`, each);
    vi.advanceTimersByTime(2 * MINUTE);
    const before = state.requests;
    expect(await start("timer_first")).toBe("stored");
    // The starts of one minute share one look.
    const after = state.requests;
    expect(after - before).toBeLessThan(100);
    await start("timer_second");
    expect(state.requests - after).toBeLessThan(20);
  });

  test("where jobs store files, one running job may hold more than the limit of all, and refuses the next start", async () => {
    const { start, mark, stored } = await begin({ FILES_URL: "https://bucket.example/files" });
    await start("timer_a");
    for (const each of [1, 8, 9, 10, 11]) await mark("timer_a", each);
    vi.advanceTimersByTime(2 * MINUTE);
    expect(await start("timer_b")).toBe("stored");
    expect(await stored()).toBeGreaterThan(2 ** 29);
  });

  test("a start reads no sizes while few jobs run", async () => {
    const { start, state } = await begin();
    await start("timer_a");
    vi.advanceTimersByTime(2 * MINUTE);
    const before = state.requests;
    await start("timer_b");
    expect(state.requests - before).toBe(0);
  });
});

test("the first start costs one request, and later starts cost none", async () => {
  const { start, state, restart } = deployCaller(10);
  const cost = async (name: string) => {
    const before = state.requests;
    await start(name);
    return state.requests - before;
  };
  expect(await cost("timer_a")).toBe(1);
  expect(await cost("timer_b")).toBe(0);
  restart();
  expect(await cost("timer_c")).toBe(0);
  vi.advanceTimersByTime(60 * MINUTE);
  expect(await cost("timer_d")).toBe(0);
  vi.advanceTimersByTime(24 * 60 * MINUTE);
  expect(await cost("timer_e")).toBe(0);
});

test("an unavailable server refuses the first start with its own message, and the next start succeeds", async () => {
  const { start, state } = deployCaller(10);
  state.isAway = true;
  await expect(start("timer_a")).rejects.toThrow("at capacity");
  state.isAway = false;
  expect(await start("timer_a")).toBe("reserved");
});

test("an object that lost its storage finds the caller's jobs by a search, and counts and lists them", async () => {
  const { start, end, restart, list, state } = deployCaller(10);
  state.isSearched = true;
  for (let n = 0; n < 10; n++) expect(await start(`timer_${n}`)).toBe("reserved");
  expect(await start("timer_over")).toBe("full");
  restart(true);
  expect(await start("timer_over")).toBe("full");
  expect((await list()).toSorted()).toEqual(Array.from({ length: 10 }, (_, n) => `timer_${n}`));
  await end("timer_0");
  expect(await start("timer_more")).toBe("reserved");
});

test("an object that lost its storage begins anew where the server refuses searches", async () => {
  const { start, restart } = deployCaller(10);
  for (let n = 0; n < 10; n++) expect(await start(`timer_${n}`)).toBe("reserved");
  restart(true);
  for (let n = 0; n < 10; n++) expect(await start(`timer_more${n}`)).toBe("reserved");
  expect(await start("timer_over")).toBe("full");
});

test("a caller's record is removed within a day after its promises were removed, and not before", async () => {
  const { object, start, end, list, sim } = deployCaller(10);
  await start("timer_a");
  await end("timer_a");
  const ada = { id: "ada", key: KEY, label: "ada" };
  const poll = async (cursor: string | null) => {
    const answer = await object.readEvents(ada, { name: "job.ended", filter: {}, cursor, limit: 10 });
    return answer;
  };
  const { cursor } = await poll(null);
  vi.advanceTimersByTime(25 * 60 * MINUTE);
  await object.alarm();
  expect((await poll(cursor)).truncated).toBe(false);
  expect(await list()).toEqual(["timer_a"]);
  const isGone = vi.spyOn(sim, "send").mockImplementation(async (kind, data) => {
    const { id } = data as { id: string };
    const isOwn = id.startsWith(KEY);
    if (kind === "promise.get" && isOwn) return { status: 404, data: "not found" } as never;
    throw new Error(`${kind} of ${id}`);
  });
  vi.advanceTimersByTime(25 * 60 * MINUTE);
  await object.alarm();
  isGone.mockRestore();
  expect(await list()).toEqual([]);
  expect((await poll(cursor)).truncated).toBe(true);
});
