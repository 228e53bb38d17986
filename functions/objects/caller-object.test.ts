/** A caller's object with a Resonate server in this process: the jobs that it counts and lists. */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type StartedJob, startedJob } from "../../core/jobs/caller-record.ts";
import { Names } from "../../core/jobs/names.ts";
import { reservationFor, tagOf } from "../../core/jobs/reservation.ts";
import { childOf, encodeValue, RESERVATION } from "../../core/resonate/codec.ts";
import { cleanUpId, feedEntryId, outputId, storedMarkId } from "../../core/resonate/ids.ts";
import { STORED } from "../../core/resonate/size.ts";
import { Simulation } from "../../testing/simulation/simulation.ts";
import { createStorage } from "../../testing/stack/object-storage.ts";
import { CallerObject } from "./caller-object.ts";

const RUNS = 60 * Number(process.env.FUZZ_TIMES ?? 1);
const KEY = "c0123456789abcdef.";
const MINUTE = 60_000;
const CALLER = "durable-mcp:caller";
/** In minutes. */
const DAY = 24 * 60;
/** The beginning of an hour. */
const BEGAN = 480_000 * 60 * MINUTE;

beforeEach(() => void vi.useFakeTimers({ now: BEGAN, toFake: ["Date"] }));
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** A deployment with one caller: its object, and a server whose answers are counted. */
function deploy(most: number, bindings = {}) {
  const sim = new Simulation({ now: () => Date.now() });
  const state = { requests: 0, isAway: false, isSearched: false };
  vi.stubGlobal("fetch", async (_url: string, init: RequestInit) => {
    state.requests += 1;
    if (state.isAway) return new Response("", { status: 503 });
    const { kind, data } = JSON.parse(String(init.body));
    if (kind === "promise.search") {
      if (!state.isSearched) return Response.json({ kind, head: { status: 403 }, data: "not allowed" });
      const promises = sim.promises().map((id) => sim.get(id));
      const found = promises.filter((one) => one?.tags[CALLER] === data.tags[CALLER]);
      return Response.json({ kind, head: { status: 200 }, data: { promises: found } });
    }
    const { status, data: answer } = await sim.send(kind, data);
    return Response.json({ kind, head: { status }, data: answer });
  });
  const env = { RESONATE_URL: "http://resonate", AUTH_MODE: "none", ...bindings };
  let storage = createStorage();
  let object = new CallerObject({ storage }, env);
  const idOf = (name: string) => KEY + name;
  const create = async (name: string, tag: string, minutes = 10) => {
    const tags = {
      [RESERVATION]: tag,
      ...new Names([], "", KEY).ownerTags("timer"),
      "resonate:target": "poll://any@workers",
    };
    const data = {
      id: idOf(name),
      timeoutAt: Date.now() + minutes * MINUTE,
      param: encodeValue({ func: "timer" }),
      tags,
    };
    await sim.send("promise.create", data);
  };
  const isPending = (name: string) => sim.get(idOf(name))?.state === "pending";
  return {
    sim,
    state,
    create,
    idOf,
    isPending,
    get object() {
      return object;
    },
    restart(isLost = false) {
      if (isLost) storage = createStorage();
      object = new CallerObject({ storage }, env);
    },
    end: (name: string) =>
      sim.send("promise.settle", { id: idOf(name), state: "resolved", value: encodeValue("done") }),
    /** A start by an edge, which may die before it creates the job. */
    async start(name: string, count = 1, dies = false) {
      const reservation = reservationFor({ duration: 10 * MINUTE, now: Date.now(), count });
      const times = { startedAt: Date.now(), settledAt: null, due: Date.now() + 10 * MINUTE };
      const job: StartedJob = {
        id: idOf(name),
        kind: "timer",
        state: "pending",
        ...times,
        ...reservation,
        bytes: 0,
        labels: [],
      };
      const answer = await object.reserve(KEY, job, { jobs: most, bytes: 0 });
      if (!("done" in answer)) throw new Error(answer.failed.message);
      if (answer.done !== "full" && !dies) await create(name, tagOf(reservation));
      return answer.done;
    },
    async list() {
      const answer = await object.list(KEY, { limit: 1_000 });
      return "done" in answer ? answer.done.map(({ id }) => id.slice(KEY.length)) : [];
    },
  };
}

const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("start" as const), count: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("end" as const), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("die" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("wait" as const) }) },
);

test("in any history a start is refused when and only when the limit is reached, even when ends are not reported", {
  timeout: 300_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 60, size: "max" }),
      fc.integer({ min: 2, max: 30 }),
      async (steps, most) => {
        vi.setSystemTime(BEGAN);
        const { start, end, isPending, restart } = deploy(most);
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
});

test("jobs that stay open after their expected end do not hide from a start which others have ended", async () => {
  const { start, create, end } = deploy(100);
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
    const deployed = deploy(0, bindings);
    const { object, create, sim } = deployed;
    const startedAt = Date.now();
    /** Starts a job that has 1,000 bytes of arguments. */
    const start = async (name: string) => {
      const reservation = reservationFor({ duration: 10 * MINUTE, now: startedAt, count: 1 });
      const times = { startedAt, settledAt: null, due: startedAt + 10 * MINUTE };
      const job = { id: KEY + name, kind: "timer", state: "pending" as const, ...times, ...reservation };
      const answer = await object.reserve(KEY, { ...job, bytes: 1_000, labels: [] }, { jobs: 0, bytes: MOST });
      await create(name, tagOf(reservation));
      return (answer as { done: string }).done;
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
    const value = { ...encodeValue({ steps: 1 }), headers: { [STORED]: "123456" } };
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
  const { start, state, restart } = deploy(10);
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
  const { start, state } = deploy(10);
  state.isAway = true;
  await expect(start("timer_a")).rejects.toThrow("at capacity");
  state.isAway = false;
  expect(await start("timer_a")).toBe("reserved");
});

test("an object that lost its storage finds the caller's jobs by a search, and counts and lists them", async () => {
  const { start, end, restart, list, state } = deploy(10);
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
  const { start, restart } = deploy(10);
  for (let n = 0; n < 10; n++) expect(await start(`timer_${n}`)).toBe("reserved");
  restart(true);
  for (let n = 0; n < 10; n++) expect(await start(`timer_more${n}`)).toBe("reserved");
  expect(await start("timer_over")).toBe("full");
});

test("a caller's record is removed within a day after its promises were removed, and not before", async () => {
  const { object, start, end, list, sim } = deploy(10);
  await start("timer_a");
  await end("timer_a");
  const ada = { id: "ada", key: KEY, label: "ada" };
  const poll = async (cursor: string | null) => {
    const answer = await object.events(ada, { name: "job.ended", narrowed: {}, cursor, limit: 10 });
    if (!("done" in answer)) throw new Error(answer.failed.message);
    return answer.done;
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

/** The object of a caller who has subscribed, over storage that outlasts it. `receive` answers as its receiver. */
async function subscribed(receive: (id: string, url: string) => Response | Promise<Response>, bindings = {}) {
  const TOKEN = { name: "ada", sha256: "0".repeat(64) };
  const env = {
    AUTH_MODE: "bearer",
    BEARER_TOKENS: JSON.stringify([TOKEN]),
    RESONATE_URL: "https://resonate.example.com",
    ...bindings,
  };
  const deployment = deploy(0);
  const toServer = fetch;
  vi.stubGlobal("fetch", async (url: string | URL, init: RequestInit) => {
    if (String(url).startsWith(env.RESONATE_URL)) return toServer(env.RESONATE_URL, init);
    const { type, challenge } = JSON.parse(String(init.body));
    return type === "verification"
      ? Response.json({ challenge })
      : receive(new Headers(init.headers).get("webhook-id") ?? "", String(url));
  });
  const alarm = { at: 0 };
  const storage = { ...createStorage(), setAlarm: async (at: number) => void Object.assign(alarm, { at }) };
  const awake = () => new CallerObject({ storage }, env);
  const object = awake();
  const request = { name: "job.ended", narrowed: {}, url: "https://receiver.example.com/", cursor: null };
  const more = { secret: `whsec_${btoa("s".repeat(32))}`, ttlMs: 7 * 24 * 60 * MINUTE };
  const caller = { id: "ada", key: KEY, label: "ada" };
  await object.subscribe(caller, { ...request, ...more });
  /** Starts a job that is expected to end after `minutes`, and times out after `most`. */
  const start = async (name: string, minutes: number, most = minutes) => {
    const times = { startedAt: Date.now(), settledAt: null, due: Date.now() + minutes * MINUTE };
    const job = { id: deployment.idOf(name), kind: "timer", state: "pending" as const, ...times };
    const none = { period: "", count: 0, bytes: 0, labels: [] };
    await awake().reserve(KEY, { ...job, ...none }, { jobs: 0, bytes: 0 });
    await deployment.create(name, "", most);
  };
  /** Lets the time pass until `until`, and runs each alarm in an object that has just woken up. Returns how many there were. */
  const pass = async (until: number) => {
    let alarms = 0;
    for (; alarm.at < until && alarms < 1_000; alarms++) {
      vi.setSystemTime(Math.max(Date.now() + 1, alarm.at));
      await awake().alarm();
    }
    vi.setSystemTime(until);
    return alarms;
  };
  return { ...deployment, env, storage, object, awake, alarm, start, pass, caller, request: { ...request, ...more } };
}

test("a web hook that a crash cuts off is sent again, as the next attempt is stored before anything is sent", async () => {
  const attempts: { id: string; alarm: number }[] = [];
  const sent = Promise.withResolvers<void>();
  const { object, awake, alarm, start, end, idOf } = await subscribed((id) => {
    attempts.push({ id, alarm: alarm.at });
    sent.resolve();
    return attempts.length === 1 ? new Promise<Response>(() => {}) : new Response(null, { status: 204 });
  });
  await start("timer_cut", 10);
  await end("timer_cut");
  await object.heard(KEY, [idOf("timer_cut")], []);
  await sent.promise;
  // The process ends here, and only the storage is left.
  expect(attempts).toEqual([{ id: "ended_timer_cut", alarm: expect.toSatisfy((at) => at <= Date.now() + 10_000) }]);
  vi.setSystemTime(alarm.at);
  await awake().alarm();
  expect(attempts.map(({ id }) => id)).toEqual(["ended_timer_cut", "ended_timer_cut"]);
});

test.each(["forget_jobs", "the retention"])(
  "a job that is started again after %s has removed it has its events, and one that still exists has none again",
  async (by) => {
    const received: string[] = [];
    const { object, awake, start, end, idOf, sim, caller, request } = await subscribed((id) => {
      received.push(id);
      return new Response(null, { status: 204 });
    });
    for (const name of ["job.question", "job.progress", "job.output"])
      await object.subscribe(caller, { ...request, name });
    const id = idOf("timer_a");
    const question = { message: "Go on?", requestedSchema: { type: "object", properties: {} } };
    const entry = { message: "asks", questions: { go: { promiseId: "p", question } }, emitted: 1 };
    const told = ["ended_timer_a", "output_timer_a_1", "progress_timer_a_1", "question_timer_a_go"];
    const play = async (object: CallerObject) => {
      for (const [child, param] of [[outputId(id, 1), "leaf"] as const, [feedEntryId(id, 1), entry] as const]) {
        const call = childOf(child, Date.now() - 1, { param, tags: { "resonate:timer": "true" } });
        await sim.send(call.kind, call.data);
      }
      vi.setSystemTime(Date.now() + MINUTE);
      await object.alarm();
      await end("timer_a");
      await object.heard(KEY, [id], []);
      await object.alarm();
      return received.splice(0).sort();
    };
    await start("timer_a", 10);
    expect(await play(object)).toEqual(told);
    vi.setSystemTime(Date.now() + 1_000);
    await start("timer_a", 10);
    await object.heard(KEY, [id], []);
    await object.alarm();
    expect(received).toEqual([]);
    vi.setSystemTime(Date.now() + MINUTE);
    sim.forget(id);
    const isTold = by === "forget_jobs";
    if (isTold) await object.forget(id, false);
    const startedAt = Date.now();
    await start("timer_a", 10);
    expect(await play(isTold ? object : awake())).toEqual(told.map((event) => `${event}@${startedAt}`));
  },
);

test("a subscription to a job of thirty days costs little while nothing happens, even if the object is evicted each time", async () => {
  const receive = vi.fn(() => new Response(null, { status: 204 }));
  const { state, start, pass } = await subscribed(receive);
  await start("timer_long", 30 * DAY);
  const day = async () => {
    const before = state.requests;
    const alarms = await pass(Date.now() + DAY * MINUTE);
    return { alarms, requests: state.requests - before };
  };
  const days = [await day(), await day()];
  // The pauses grow from 30 seconds to an hour; on the second day each is an hour.
  expect(days[0]?.alarms).toBeLessThanOrEqual(40);
  expect(days[1]?.alarms).toBeLessThanOrEqual(26);
  expect(days.map(({ requests }) => requests)).toEqual([
    expect.toSatisfy((n) => n <= 40),
    expect.toSatisfy((n) => n <= 26),
  ]);
  expect(receive).not.toHaveBeenCalled();
});

/** A receiver that notes when it got each event. */
function noting() {
  const received = new Map<string, number>();
  const receive = (id: string) => {
    received.set(id.replace("ended_timer_", ""), Date.now());
    return new Response(null, { status: 204 });
  };
  return { received, receive };
}

test("a web hook is told of an end right after the job was expected to end, although the job could run for longer", async () => {
  const { received, receive } = noting();
  const { start, end, pass } = await subscribed(receive);
  await start("timer_tea", DAY, 8 * DAY);
  const fires = Date.now() + DAY * MINUTE;
  await pass(fires);
  await end("timer_tea");
  await pass(fires + 10_000);
  expect(received.get("tea")).toBeLessThanOrEqual(fires + 2_000);
});

test("jobs that stay open after their expected end are looked at ever more rarely, and do not delay others", async () => {
  const { received, receive } = noting();
  const { start, end, pass, state } = await subscribed(receive);
  const began = Date.now();
  const at = (minutes: number) => began + minutes * MINUTE;
  for (let n = 0; n < 60; n++) await start(`timer_stuck${n}`, 60, 8 * DAY);
  await start("timer_early", 6 * 60);
  await start("timer_late", 6 * 60, 8 * DAY);
  await pass(at(60));
  await end("timer_early");
  const before = state.requests;
  expect(await pass(at(3 * 60))).toBeLessThan(60);
  // Two hours after their expected end each job was looked at after 1, 30, 60 seconds, and so on, and in its turn.
  expect(state.requests - before).toBeLessThan(60 * 16);
  expect(received.get("early")).toBeLessThan(at(2 * 60 + 1));
  await pass(at(6 * 60));
  await end("timer_late");
  await pass(at(6 * 60 + 1));
  expect(received.get("late")).toBeLessThan(at(6 * 60) + 3_000);
  for (let n = 0; n < 60; n++) await end(`timer_stuck${n}`);
  await pass(at(7 * 60 + 1));
  expect(received.size).toBe(62);
});

test("jobs that are expected to end at the same time are looked at within seconds", async () => {
  const { received, receive } = noting();
  const { start, end, pass } = await subscribed(receive);
  for (let n = 0; n < 100; n++) await start(`timer_${n}`, DAY, 8 * DAY);
  const due = Date.now() + DAY * MINUTE;
  await pass(due);
  for (let n = 0; n < 100; n++) await end(`timer_${n}`);
  await pass(due + 10_000);
  expect(received.size).toBe(100);
});

test.each([
  ["no others start", 5],
  ["as many start", 12],
])("many expected ends that are told at once cost few looks at other open jobs, while %s", async (starts, most) => {
  const { received, receive } = noting();
  const { start, end, pass, awake, idOf, state } = await subscribed(receive);
  // One of 500 is expected to end each 3.6 seconds of the second half-hour.
  const [pace, began] = [3_600, Date.now()];
  for (let n = 0; n < 500; n++) await start(`timer_${n}`, 30 + (n * pace) / MINUTE, DAY);
  await pass(began + 30 * MINUTE - 10);
  const before = state.requests;
  for (let n = 0; n < 250; n++) {
    await pass(began + 30 * MINUTE + n * pace - 10);
    await end(`timer_${n}`);
    await awake().heard(KEY, [idOf(`timer_${n}`)], []);
    if (starts === "as many start") await start(`timer_${500 + n}`, 30, DAY);
  }
  await pass(Date.now() + MINUTE);
  expect(received.size).toBe(250);
  expect((state.requests - before) / 250).toBeLessThan(most);
});

test("each of many open jobs is looked at within about an hour", async () => {
  const { received, receive } = noting();
  const { start, end, pass } = await subscribed(receive);
  for (let n = 0; n < 200; n++) await start(`timer_${n}`, 8 * DAY);
  await pass(Date.now() + DAY * MINUTE);
  // Nobody reports these ends.
  for (let n = 0; n < 200; n++) await end(`timer_${n}`);
  await pass(Date.now() + 65 * MINUTE);
  expect(received.size).toBe(200);
});

test("a start does not delay the look that the end of another job is due for", async () => {
  const { received, receive } = noting();
  const { start, end, pass } = await subscribed(receive);
  await start("timer_tea", 90);
  const fires = Date.now() + 90 * MINUTE;
  await pass(fires);
  await end("timer_tea");
  await start("timer_next", DAY);
  await pass(fires + 10_000);
  expect(received.has("tea")).toBe(true);
});

test("a question of a long job is told within five minutes where no connection follows it, at three requests a look", async () => {
  const { received, receive } = noting();
  const { object, sim, start, pass, idOf, state, caller, request } = await subscribed(receive);
  await object.subscribe(caller, { ...request, name: "job.question" });
  await start("timer_long", 30 * DAY);
  const passCheaply = async () => {
    const before = state.requests;
    const alarms = await pass(Date.now() + 120 * MINUTE);
    expect(alarms).toBeLessThanOrEqual(25);
    expect(state.requests - before).toBeLessThanOrEqual(3 * 25);
  };
  await pass(Date.now() + 60 * MINUTE);
  await passCheaply();
  const question = { message: "Go on?", requestedSchema: { type: "object", properties: {} } };
  const entry = { message: "asks", questions: { go: { promiseId: "p", question } } };
  const call = childOf(feedEntryId(idOf("timer_long"), 1), Date.now() - 1, {
    param: entry,
    tags: { "resonate:timer": "true" },
  });
  await sim.send(call.kind, call.data);
  await pass(Date.now() + 5 * MINUTE + 1);
  expect([...received.keys()]).toEqual(["question_timer_long_go"]);
  await passCheaply();
});

test("a receiver that fails for an hour is left alone until its client, who can see that, subscribes again", async () => {
  let answer = 503;
  const receive = vi.fn(() => new Response(null, { status: answer }));
  const { object, awake, pass, start, end, idOf, caller, request } = await subscribed(receive);
  for (const name of ["timer_a", "timer_b", "timer_c", "timer_d"]) {
    await start(name, 10);
    await end(name);
    await object.heard(KEY, [idOf(name)], []);
  }
  const passMinutes = (minutes: number) => pass(Date.now() + minutes * MINUTE);
  const status = async () => {
    const seen = await awake().seen(KEY);
    return "done" in seen ? seen.done.subscriptions[0]?.status : undefined;
  };
  await passMinutes(50);
  expect(await status()).toMatchObject({ active: true, lastError: "http_5xx", failedSince: expect.any(String) });
  await passMinutes(40);
  expect(await status()).toMatchObject({ active: false, lastError: "http_5xx" });
  receive.mockClear();
  await passMinutes(24 * 60);
  expect(receive).not.toHaveBeenCalled();
  answer = 204;
  expect(await awake().subscribe(caller, request)).toMatchObject({ done: { deliveryStatus: { active: false } } });
  await passMinutes(1);
  expect(receive).toHaveBeenCalled();
  expect(await status()).toMatchObject({ active: true, lastError: null });
});

test.each(["has expired", "was ended by its owner", "was ended and its receiver could not be told"])(
  "a subscription that is made again after it %s begins at its own cursor",
  async (how) => {
    const received: string[] = [];
    const isAway = how.endsWith("told");
    const { object, start, end, idOf, caller, request } = await subscribed((id) => {
      received.push(id);
      return new Response(null, { status: isAway && id.startsWith("msg_terminated") ? 503 : 204 });
    });
    const page = await object.events(caller, { name: "job.ended", narrowed: {}, cursor: null, limit: 1 });
    if (!("done" in page)) throw new Error(page.failed.message);
    await start("timer_a", 10);
    await end("timer_a");
    await object.heard(KEY, [idOf("timer_a")], []);
    await vi.waitFor(() => expect(received).toEqual(["ended_timer_a"]));
    if (how === "has expired") {
      await object.subscribe(caller, { ...request, ttlMs: MINUTE });
      vi.setSystemTime(Date.now() + 2 * MINUTE);
      await object.alarm();
    } else {
      const seen = await object.seen(KEY);
      await object.seen(KEY, undefined, "done" in seen ? seen.done.subscriptions[0]?.id : "");
      await vi.waitFor(() => expect(received.at(-1)).toMatch(/^msg_terminated/));
      // The answer is noted right after.
      await object.alarm();
    }
    received.splice(0);
    await object.subscribe(caller, { ...request, cursor: page.done.cursor });
    await object.alarm();
    expect(received).toEqual(["ended_timer_a"]);
  },
);

test.each(["goes on", "has ended"])(
  "a subscription that %s, and whose secret and event cannot be decrypted any more, rests until it is made again",
  async (how) => {
    const keyOf = (letter: string) => ({ ENCRYPTION_KEYS: `${letter.repeat(43)}=` });
    const received: string[] = [];
    const receive = (id: string) => new Response(null, { status: received.push(id) && 204 });
    const { env, storage, start, end, idOf, alarm, caller, request } = await subscribed(receive, keyOf("A"));
    const object = new CallerObject({ storage }, { ...env, ...keyOf("B") });
    const seen = await object.seen(KEY);
    if (how === "has ended") await object.seen(KEY, undefined, "done" in seen ? seen.done.subscriptions[0]?.id : "");
    await start("timer_a", 10); // unencrypted, which is not accepted either
    await end("timer_a");
    await object.heard(KEY, [idOf("timer_a")], []);
    await object.alarm();
    expect([received, alarm.at > Date.now() + MINUTE]).toEqual([[], true]);
    expect(await object.subscribe(caller, request)).toMatchObject({ done: { id: expect.any(String) } });
    await object.alarm();
    if (how === "goes on") expect(received).toEqual(["ended_timer_a"]);
  },
);

test("a subscription that is made again while its receiver is being told of its end continues after that", async () => {
  const { promise: held, resolve: answer } = Promise.withResolvers<Response>();
  const received: string[] = [];
  const { object, start, end, idOf, caller, request } = await subscribed((id) => {
    received.push(id);
    return id.startsWith("msg_terminated") ? held : new Response(null, { status: 204 });
  });
  const subscriptions = async () => {
    const seen = await object.seen(KEY);
    return "done" in seen ? seen.done.subscriptions.map(({ id }) => id) : [];
  };
  const [id] = await subscriptions();
  await object.seen(KEY, undefined, id);
  await vi.waitFor(() => expect(received).toHaveLength(1));
  await object.subscribe(caller, request);
  answer(new Response(null, { status: 204 }));
  await start("timer_a", 10);
  await end("timer_a");
  await object.heard(KEY, [idOf("timer_a")], []);
  await vi.waitFor(() => expect(received).toContain("ended_timer_a"));
  await object.alarm();
  expect(await subscriptions()).toEqual([id]);
});

test("a web hook without events for weeks has its cursor moved on at each refresh, and is not told of a gap", async () => {
  const quiet = { url: "https://quiet.example.com/", narrowed: { jobNames: ["timer_quiet"] } };
  const received: string[] = [];
  const { awake, start, end, pass, idOf, caller, request } = await subscribed((id, url) => {
    if (url === quiet.url) received.push(id);
    return new Response(null, { status: 204 });
  });
  const refresh = async () => {
    const answer = await awake().subscribe(caller, { ...request, ...quiet });
    if (!("done" in answer) || "refused" in answer.done) throw new Error("not granted");
    return answer.done;
  };
  const endJob = async (name: string) => {
    await start(name, 10);
    await end(name);
    await awake().heard(KEY, [idOf(name)], []);
  };
  const cursors = [(await refresh()).cursor];
  for (let day = 1; day <= 16; day++) {
    await endJob(`timer_${day}`);
    await pass(Date.now() + DAY * MINUTE);
    if (day % 5 > 0) continue;
    const { cursor, truncated } = await refresh();
    expect(truncated).toBe(false);
    cursors.push(cursor);
  }
  expect(received).toEqual([]);
  expect(new Set(cursors).size).toBe(4);
  await endJob("timer_quiet");
  await vi.waitFor(() => expect(received).toEqual(["ended_timer_quiet"]));
});

test.each([3, 8])(
  "%i slow receivers with full backlogs do not delay the events of another subscription",
  async (slow) => {
    const prompt = "https://prompt.example.com/";
    const received: string[] = [];
    const slowly: (() => void)[] = [];
    const { object, start, end, idOf, caller, request } = await subscribed((id, url) => {
      const answer = new Response(null, { status: 204 });
      if (url !== prompt) return new Promise((resolve) => slowly.push(() => resolve(answer)));
      received.push(id);
      return answer;
    });
    for (let n = 1; n < slow; n++) await object.subscribe(caller, { ...request, url: `https://slow${n}.example.com/` });
    await object.subscribe(caller, { ...request, url: prompt, narrowed: { jobNames: ["timer_late"] } });
    const endJob = async (name: string) => {
      await start(name, 10);
      await end(name);
      await object.heard(KEY, [idOf(name)], []);
    };
    for (let n = 0; n < 120; n++) await endJob(`timer_${n}`);
    await vi.waitFor(() => expect(slowly.length).toBe(Math.min(4 * slow, 24)));
    vi.advanceTimersByTime(1_000);
    await endJob("timer_late");
    // Eight receivers take all places, so the event needs the first that becomes free.
    if (slow === 8) slowly[0]?.();
    await vi.waitFor(() => expect(received).toEqual(["ended_timer_late"]));
  },
);

test("of 10,000 subscriptions 50 are granted, and only 10 new receivers a minute are asked whether they want deliveries", async () => {
  const { object, caller, request } = await subscribed(() => new Response(null, { status: 204 }));
  const answers = new Map<string, number>();
  const count = (answer: string) => answers.set(answer, (answers.get(answer) ?? 0) + 1);
  for (let n = 0; n < 10_000; n++) {
    // Every second subscription has a receiver of its own.
    const url = n % 2 ? request.url : `https://receiver.example.com/${n}`;
    const answer = await object.subscribe(caller, { ...request, url, narrowed: { jobNames: [`timer_${n}`] } });
    if (!("done" in answer)) throw new Error(answer.failed.message);
    count("refused" in answer.done ? `${answer.done.refused} ${answer.done.data.limit}` : "granted");
  }
  // One subscription existed before, with its receiver.
  expect(answers.get("granted")).toBe(49);
  expect(Object.fromEntries(answers)).toEqual({
    granted: 49,
    "ResourceExhausted verifications": expect.any(Number),
    "ResourceExhausted subscriptions": expect.toSatisfy((n) => n > 9_900),
  });
});

test("of many subscriptions at the same time 50 are granted, also where secrets are encrypted", async () => {
  const encrypted = { ENCRYPTION_KEYS: `${"A".repeat(43)}=` };
  const { object, caller, request } = await subscribed(() => new Response(null, { status: 204 }), encrypted);
  const subscribe = async (_: unknown, n: number) => {
    const answer = await object.subscribe(caller, { ...request, narrowed: { jobNames: [`timer_${n}`] } });
    if (!("done" in answer)) throw new Error(answer.failed.message);
    return answer.done;
  };
  const answers = await Promise.all(Array.from({ length: 200 }, subscribe));
  // One subscription existed before.
  expect(answers.filter((answer) => !("refused" in answer))).toHaveLength(49);
});

test("a caller who subscribes and unsubscribes for weeks, at ever new addresses, fills no storage", async () => {
  const { object, caller, request, storage } = await subscribed(() => new Response(null, { status: 204 }));
  const count = () => Number(storage.sql.exec("SELECT count(*) AS n FROM verified").toArray()[0]?.n);
  const most: number[] = [];
  for (let week = 0; week < 3; week++) {
    for (let n = 0; n < 150; n++) {
      const key = { ...request, url: `https://receiver.example.com/${week}/${n}` };
      expect(await object.subscribe(caller, key)).toMatchObject({ done: { id: expect.any(String) } });
      await object.unsubscribe(caller, key);
      vi.setSystemTime(Date.now() + 60 * MINUTE);
    }
    most.push(count());
  }
  expect(Math.max(...most)).toBeLessThanOrEqual(200);
});

test.each(["has unsubscribed", "lets the subscription expire"])(
  "an object whose only subscriber %s has no more alarms for it, while a job goes on",
  async (how) => {
    const { awake, start, pass, caller, request } = await subscribed(() => new Response(null, { status: 204 }));
    await start("timer_long", 30 * DAY);
    if (how === "has unsubscribed") await awake().unsubscribe(caller, request);
    else await awake().subscribe(caller, { ...request, ttlMs: MINUTE });
    await pass(Date.now() + 2 * MINUTE);
    expect(await pass(Date.now() + 60 * MINUTE)).toBeLessThan(3);
  },
);
