/** The cost of a pass of a polling loop does not grow with the number of passes, on the embedded server and the real one. */
import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { PromiseRecord } from "../../../core/resonate/connection/protocol.ts";
import { journalEntryId } from "../../../core/resonate/ids.ts";
import { until } from "../../../testing/stack/program.ts";
import { ownGroup, startWorker } from "../../../testing/stack/worker-process.ts";
import { startSampleArchive } from "../../../tools/weather/sample-archive/server.ts";
import { type Gate, startGate } from "../../support/gate.ts";
import { type Resonate, startResonate } from "../../support/resonate.ts";

const PASSES = 14;
const MONTHS = 48;

let resonate: Resonate;
beforeAll(async () => {
  resonate = await startResonate();
});
afterAll(() => resonate?.[Symbol.asyncDispose]());

/** The cost of each pass in which the job looked once. On a busy machine a pass may have several looks; those are left out. */
function passes({ calls }: Gate, id: string) {
  const own = calls.filter((call) => call.id?.startsWith(id) && call.kind !== "promise.create");
  const starts = own.flatMap(({ kind }, i) => (kind === "task.acquire" ? [i] : []));
  const all = starts.map((start, i) => own.slice(start, starts[i + 1]));
  const once = all.filter((pass) => pass.filter(({ kind }) => kind === "task.suspend").length === 1);
  return once.map((pass) => {
    const bytes = pass.map((call) => call.bytes);
    return { requests: pass.length, bytes: bytes.reduce((sum, each) => sum + each, 0), largest: Math.max(...bytes) };
  });
}

test.each(["looks_until", "looks_by_hand"])("%s", { timeout: 240_000 }, async (func) => {
  await using gate = await startGate(resonate.url);
  const { group, namespace, env } = ownGroup();
  await using _worker = await startWorker(
    { ...resonate.env, ...env, RESONATE_URL: gate.url },
    { script: "test/worker/scripts/looping-worker.ts" },
  );
  const id = `${namespace}${func}_x`;
  const file = join(tmpdir(), id.replaceAll("/", "-"));
  await resonate.start({ id, func, args: { pause: 300, file }, group });
  await until("so many passes", () => passes(gate, id).length >= PASSES, 100_000);
  await writeFile(file, "");
  const { state, value } = await resonate.settled(id, 100_000);
  expect([state, value.data]).toEqual(["resolved", true]);
  await rm(file);
  const cost = passes(gate, id);
  const [early, late] = [cost.slice(2, 5), cost.slice(-4, -1)];
  const most = (of: keyof (typeof cost)[number], some: typeof cost) => Math.max(...some.map((pass) => pass[of]));
  expect(most("requests", late)).toBeLessThanOrEqual(most("requests", early) + 1);
  // The one additional request may be as large as the largest of the early ones.
  expect(most("bytes", late)).toBeLessThanOrEqual(1.2 * most("bytes", early) + most("largest", early));
});

test("a sleep is dispatched to no worker, and another worker takes the timer over", async () => {
  await using gate = await startGate(resonate.url);
  const { group, namespace, env } = ownGroup();
  const launch = () => startWorker({ ...resonate.env, ...env, RESONATE_URL: gate.url });
  const id = `${namespace}timer_over`;
  {
    await using _first = await launch();
    const fires_at = new Date(Date.now() + 4_000).toISOString();
    await resonate.start({ id, func: "timer", args: { timer_name: "over", fires_at }, group });
    await until("the timer to sleep", () => gate.calls.some((call) => call.kind === "task.suspend" && call.id === id));
  }
  // If the sleep had the workers' address, the server would dispatch it again and again.
  const { promise: sleep } = (await resonate.call("promise.get", { id: journalEntryId(id, 1) })).data as {
    promise: PromiseRecord;
  };
  expect(Object.keys(sleep.tags)).toContain("resonate:timer");
  expect(sleep.tags["resonate:target"] ?? "").not.toContain(group);
  await using _second = await launch();
  expect((await resonate.settled(id, 60_000)).state).toBe("resolved");
});

test("a range has the results of months that end at different times", async () => {
  await using archive = await startSampleArchive();
  // Each month fails first, so that they end at different times.
  archive.control.inject({ fault: { kind: "status", status: 503, retry_after: "6" }, times: MONTHS });
  const { group, namespace, env } = ownGroup();
  await using _worker = await startWorker({ ...resonate.env, ...env, WEATHER_API_URL: archive.url });
  const args = { latitude: 47.6, longitude: -122.3, from: "2012-01", to: "2015-12", confirmed: true };
  const id = `${namespace}weather_range_47.6_-122.3_2012-01_2015-12`;
  await resonate.start({ id, func: "weather_range", args, group, timeoutAt: Date.now() + 3_600_000 });
  const { value } = await resonate.settled(id, 200_000);
  expect(value.data).toMatchObject({ months: { length: MONTHS } });
  expect(value.data.missing).toBeUndefined();
}, 240_000);
