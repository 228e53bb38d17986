/** How a subscribed caller's jobs are refreshed, so that their events are found soon and at a low cost. */
import { expect, test, vi } from "vitest";
import { childOf } from "../../core/resonate/codec.ts";
import { feedEntryId } from "../../core/resonate/ids.ts";
import { KEY, MINUTE, moveClock, noting, subscribed } from "../../test/support/caller-deployment.ts";

/** In minutes. */
const DAY = 24 * 60;

moveClock();

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
    await awake().noteReports(KEY, [idOf(`timer_${n}`)], []);
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
