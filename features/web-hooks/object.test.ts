/** Subscriptions by web hook in a caller's object, and their deliveries. */
import { expect, test, vi } from "vitest";
import { childOf } from "../../core/resonate/codec.ts";
import { feedEntryId, outputId } from "../../core/resonate/ids.ts";
import { KEY, MINUTE, moveClock, subscribed } from "../../test/support/caller-deployment.ts";
import { type OpenCallerObject, openCallerObject } from "../../test/support/caller-object.ts";

/** In minutes. */
const DAY = 24 * 60;

moveClock();

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
  await object.noteReports(KEY, [idOf("timer_cut")], []);
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
    const play = async (object: OpenCallerObject) => {
      for (const [child, param] of [[outputId(id, 1), "leaf"] as const, [feedEntryId(id, 1), entry] as const]) {
        const call = childOf(child, Date.now() - 1, { param, tags: { "resonate:timer": "true" } });
        await sim.send(call.kind, call.data);
      }
      vi.setSystemTime(Date.now() + MINUTE);
      await object.alarm();
      await end("timer_a");
      await object.noteReports(KEY, [id], []);
      await object.alarm();
      return received.splice(0).sort();
    };
    await start("timer_a", 10);
    expect(await play(object)).toEqual(told);
    vi.setSystemTime(Date.now() + 1_000);
    await start("timer_a", 10);
    await object.noteReports(KEY, [id], []);
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

test("a receiver that fails for an hour is left alone until its client, who can see that, subscribes again", async () => {
  let answer = 503;
  const receive = vi.fn(() => new Response(null, { status: answer }));
  const { object, awake, pass, start, end, idOf, caller, request } = await subscribed(receive);
  for (const name of ["timer_a", "timer_b", "timer_c", "timer_d"]) {
    await start(name, 10);
    await end(name);
    await object.noteReports(KEY, [idOf(name)], []);
  }
  const passMinutes = (minutes: number) => pass(Date.now() + minutes * MINUTE);
  const status = async () => {
    const seen = await awake().view(KEY);
    return seen.subscriptions[0]?.status;
  };
  await passMinutes(50);
  expect(await status()).toMatchObject({ active: true, lastError: "http_5xx", failedSince: expect.any(String) });
  await passMinutes(40);
  expect(await status()).toMatchObject({ active: false, lastError: "http_5xx" });
  receive.mockClear();
  await passMinutes(24 * 60);
  expect(receive).not.toHaveBeenCalled();
  answer = 204;
  expect(await awake().subscribe(caller, request)).toMatchObject({ deliveryStatus: { active: false } });
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
    const page = await object.readEvents(caller, { name: "job.ended", filter: {}, cursor: null, limit: 1 });
    await start("timer_a", 10);
    await end("timer_a");
    await object.noteReports(KEY, [idOf("timer_a")], []);
    await vi.waitFor(() => expect(received).toEqual(["ended_timer_a"]));
    if (how === "has expired") {
      await object.subscribe(caller, { ...request, ttlMs: MINUTE });
      vi.setSystemTime(Date.now() + 2 * MINUTE);
      await object.alarm();
    } else {
      const seen = await object.view(KEY);
      await object.view(KEY, undefined, seen.subscriptions[0]?.id);
      await vi.waitFor(() => expect(received.at(-1)).toMatch(/^msg_terminated/));
      // The answer is noted right after.
      await object.alarm();
    }
    received.splice(0);
    await object.subscribe(caller, { ...request, cursor: page.cursor });
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
    const object = openCallerObject(storage, { ...env, ...keyOf("B") });
    const seen = await object.view(KEY);
    if (how === "has ended") await object.view(KEY, undefined, seen.subscriptions[0]?.id);
    await start("timer_a", 10); // unencrypted, which is not accepted either
    await end("timer_a");
    await object.noteReports(KEY, [idOf("timer_a")], []);
    await object.alarm();
    expect([received, alarm.at > Date.now() + MINUTE]).toEqual([[], true]);
    expect(await object.subscribe(caller, request)).toMatchObject({ id: expect.any(String) });
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
    const seen = await object.view(KEY);
    return seen.subscriptions.map(({ id }) => id);
  };
  const [id] = await subscriptions();
  await object.view(KEY, undefined, id);
  await vi.waitFor(() => expect(received).toHaveLength(1));
  await object.subscribe(caller, request);
  answer(new Response(null, { status: 204 }));
  await start("timer_a", 10);
  await end("timer_a");
  await object.noteReports(KEY, [idOf("timer_a")], []);
  await vi.waitFor(() => expect(received).toContain("ended_timer_a"));
  await object.alarm();
  expect(await subscriptions()).toEqual([id]);
});

test("a web hook without events for weeks has its cursor moved on at each refresh, and is not told of a gap", async () => {
  const quiet = { url: "https://quiet.example.com/", filter: { jobNames: ["timer_quiet"] } };
  const received: string[] = [];
  const { awake, start, end, pass, idOf, caller, request } = await subscribed((id, url) => {
    if (url === quiet.url) received.push(id);
    return new Response(null, { status: 204 });
  });
  const refresh = async () => {
    const answer = await awake().subscribe(caller, { ...request, ...quiet });
    if ("refused" in answer) throw new Error("not granted");
    return answer;
  };
  const endJob = async (name: string) => {
    await start(name, 10);
    await end(name);
    await awake().noteReports(KEY, [idOf(name)], []);
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
    await object.subscribe(caller, { ...request, url: prompt, filter: { jobNames: ["timer_late"] } });
    const endJob = async (name: string) => {
      await start(name, 10);
      await end(name);
      await object.noteReports(KEY, [idOf(name)], []);
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
    const answer = await object.subscribe(caller, { ...request, url, filter: { jobNames: [`timer_${n}`] } });
    count("refused" in answer ? `${answer.refused} ${answer.data.limit}` : "granted");
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
    const answer = await object.subscribe(caller, { ...request, filter: { jobNames: [`timer_${n}`] } });
    return answer;
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
      expect(await object.subscribe(caller, key)).toMatchObject({ id: expect.any(String) });
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
