/** A cancelled job runs its `catch` and `finally`, on a standalone server and a worker that may be killed. */

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RemoteStore } from "../../../core/jobs/remote-store.ts";
import { startJob } from "../../../core/jobs/start.ts";
import { viewOf } from "../../../core/jobs/status.ts";
import { cleanUpId } from "../../../core/resonate/ids.ts";
import { until } from "../../../testing/stack/program.ts";
import { ownGroup, startWorker, type WorkerProcess } from "../../../testing/stack/worker-process.ts";
import { startGate } from "../../support/gate.ts";
import { jobStore } from "../../support/job-store.ts";
import { type Resonate, startResonate } from "../../support/resonate.ts";
import { booking, brief, hasty, resumed } from "../scripts/cancelled.ts";

const { group, namespace, env } = ownGroup();
let resonate: Resonate;
let store: RemoteStore;
let folder: string;
let worker: WorkerProcess;

const start = () =>
  startWorker(
    { ...resonate.env, ...env, FOLDER: folder, LEASE_SECONDS: "2" },
    { script: "test/worker/scripts/cancelled-worker.ts" },
  );

beforeAll(async () => {
  [resonate, folder] = await Promise.all([startResonate(), mkdtemp(join(tmpdir(), "cancelled-"))]);
  store = jobStore({ url: resonate.url, token: process.env.RESONATE_TOKEN, group, namespace }, [booking, hasty, brief]);
  worker = await start();
});
afterAll(async () => {
  await worker?.[Symbol.asyncDispose]();
  await resonate?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

const done = async (n: string) => (await readFile(join(folder, n), "utf8").catch(() => "")).trim().split("\n");
const did = (n: string, what: string) =>
  until(`${n}: ${what}`, async () => (await done(n)).includes(what) || undefined);
const viewed = async (name: string) => viewOf(name, await store.get(name));
const cleaned = (name: string) =>
  until(
    `${name} to be cleaned up`,
    async () => {
      const view = await viewed(name);
      return view.cleanup === "running" ? undefined : view;
    },
    30_000,
  );

/** Counts the idempotency keys: all of them, and for each kind of request its keys and its requests. */
async function keysOf(n: string) {
  const sent = (await done(`${n} keys`)).map((line) => line.split(" "));
  const all = new Set(sent.map(([, key]) => key));
  const each = Map.groupBy(sent, ([what]) => what);
  const counted = [...each].map(([what, requests]) => [
    what,
    new Set(requests.map(([, key]) => key)).size,
    requests.length,
  ]);
  return { all: all.size, each: counted };
}
/** The counts for two generations of a job that both undid their work. A step that is tried again keeps its key. */
const ofTwo = {
  all: 6,
  each: [
    ["flight", 2, 2],
    ["-flight", 2, 4],
    ["closed", 2, 2],
  ],
};

test.each(["sleep", "all"])(
  "a job that is cancelled in a %s undoes its work, and counts as cancelled at once",
  async (how) => {
    const { name, id } = await startJob(store, booking, { n: how, how }, Date.now());
    await resonate.asleep(id);
    expect(await store.cancel(name)).toMatchObject({ isOurs: true, promise: { state: "rejected_canceled" } });
    expect(await viewed(name)).toMatchObject({ status: "cancelled", cleanup: expect.stringMatching(/running|done/) });
    expect(await cleaned(name)).toMatchObject({ status: "cancelled", cleanup: "done" });
    expect(await done(how)).toEqual(["flight", "-flight", "telling", "closed"]);
  },
);

test("a start after a cancellation and its clean-up have new idempotency keys", async () => {
  for (const attempt of ["booking_keys", "booking_keys~2"]) {
    const { name, id } = await startJob(store, booking, { n: "keys" }, Date.now());
    expect(name).toBe(attempt);
    await resonate.asleep(id);
    await store.cancel(name);
    expect(await cleaned(name)).toMatchObject({ cleanup: "done" });
  }
  expect(await keysOf("keys")).toEqual(ofTwo);
});

// Only the embedded server removes single jobs.
test.skipIf(process.env.RESONATE_URL)(
  "a job that was removed and is started again is not taken for settled, although its worker was told that the removed one is",
  async () => {
    const begun = async () => (await done("told")).filter((line) => line === "paying").length;
    for (const time of [1, 2]) {
      const { name } = await startJob(store, booking, { n: "told", how: "heeds" }, Date.now());
      expect(name).toBe("booking_told");
      await until("the step", async () => (await begun()) === time);
      // A worker watches the promise of a job that runs for two seconds. A job that it leaves runs again after its lease.
      await new Promise((resolve) => setTimeout(resolve, 5_000));
      expect(await begun()).toBe(time);
      await store.cancel(name);
      await cleaned(name);
      expect(await store.forget(name)).toBe("forgotten");
    }
  },
);

test.each(["step", "later"])(
  "a step that was under way (%s) is named to the clean-up and not repeated",
  async (how) => {
    const { name } = await startJob(store, booking, { n: how, how }, Date.now());
    await did(how, "paying");
    await store.cancel(name);
    expect(await cleaned(name)).toMatchObject({ cleanup: "done" });
    expect(await done(how)).toEqual(["flight", "paying", "-flight pay", "telling", "closed"]);
  },
);

test("the result of a step that was under way reaches the clean-up", async () => {
  const { name } = await startJob(store, booking, { n: "ends", how: "ends" }, Date.now());
  await did("ends", "paying");
  await store.cancel(name);
  await writeFile(join(folder, "ends paid"), "");
  expect(await cleaned(name)).toMatchObject({ cleanup: "done" });
  expect(await done("ends")).toEqual(["flight", "paying", "-flight 7 euros", "telling", "closed"]);
});

test("a cancellation while the worker's connection for news is lost stops the step under way as soon as it is back", async () => {
  await using gate = await startGate(resonate.url);
  const own = ownGroup();
  await using _worker = await startWorker(
    { ...resonate.env, ...own.env, RESONATE_URL: gate.url, FOLDER: folder },
    { script: "test/worker/scripts/cancelled-worker.ts" },
  );
  const { group, namespace } = own;
  const endpoint = { url: resonate.url, token: process.env.RESONATE_TOKEN, group, namespace };
  const ownStore = jobStore(endpoint, [booking]);
  const { name, id } = await startJob(ownStore, booking, { n: "heeds", how: "heeds" }, Date.now());
  await did("heeds", "paying");
  await until("the worker to listen", () =>
    gate.calls.some((call) => call.kind === "promise.register_listener" && call.id === id),
  );
  gate.holdStreams(true);
  gate.cutStreams();
  await ownStore.cancel(name);
  gate.holdStreams(false);
  await did("heeds", "stopped");
});

test("a step whose worker died is named to the clean-up and not repeated", async () => {
  const { name } = await startJob(store, booking, { n: "dead", how: "ends" }, Date.now());
  await did("dead", "paying");
  worker.signal("SIGKILL");
  await worker[Symbol.asyncDispose]();
  await store.cancel(name);
  await writeFile(join(folder, "dead paid"), "");
  worker = await start();
  expect(await cleaned(name)).toMatchObject({ cleanup: "done" });
  expect(await done("dead")).toEqual(["flight", "paying", "-flight pay", "telling", "closed"]);
});

test("a clean-up survives the death of its worker, and a new start waits for it", async () => {
  const { name, id } = await startJob(store, booking, { n: "killed" }, Date.now());
  await resonate.asleep(id);
  await writeFile(join(folder, "hold"), "");
  await store.cancel(name);
  await did("killed", "telling");
  await writeFile(join(folder, "quick"), "");
  const again = await startJob(store, booking, { n: "killed" }, Date.now());
  expect(again).toMatchObject({ name: `${name}~2`, state: "pending" });
  worker.signal("SIGKILL");
  await worker[Symbol.asyncDispose]();
  await rm(join(folder, "hold"));
  worker = await start();
  expect(await cleaned(name)).toMatchObject({ cleanup: "done" });
  const { value } = await until(
    "the next attempt to end",
    async () => {
      const promise = await store.get(again.name);
      return promise?.state === "resolved" ? promise : undefined;
    },
    30_000,
  );
  expect(value).toBe("booked");
  await rm(join(folder, "quick"));
  expect(await done("killed")).toEqual(["flight", "-flight", "telling", "telling", "closed", "flight", "closed"]);
});

test("a start that resumes a cancelled job decides what it keeps after the clean-up", async () => {
  const own = ownGroup();
  const { group, namespace } = own;
  const endpoint = { url: resonate.url, token: process.env.RESONATE_TOKEN, group, namespace };
  const ownStore = jobStore(endpoint, [resumed]);
  const startOwn = () => startJob(ownStore, resumed, { n: "kept" }, Date.now());
  const options = { script: "test/worker/scripts/cancelled-worker.ts" };
  const settings = { ...resonate.env, ...own.env, FOLDER: folder };
  await using gate = await startGate(resonate.url);
  const first = await startWorker({ ...settings, RESONATE_URL: gate.url }, options);
  const { name, id } = await startOwn();
  await resonate.asleep(id);
  // This worker cannot claim the clean-up, so the next attempt comes before it.
  void gate.hold("task.acquire", { of: cleanUpId(id) });
  await ownStore.cancel(name);
  await writeFile(join(folder, "quick"), "");
  const again = await startOwn();
  await resonate.asleep(again.id);
  expect((await ownStore.feeds.newest(again)).entry?.message).toBe("waiting for the clean-up of the cancelled attempt");
  await first[Symbol.asyncDispose]();
  await using _second = await startWorker(settings, options);
  expect(await resonate.settled(again.id, 60_000)).toMatchObject({ state: "resolved" });
  await rm(join(folder, "quick"));
  const view = viewOf(again.name, await ownStore.get(again.name));
  expect(view.began_anew).toContain("recorded work after a failure");
  expect(view.resumed_from).toBeUndefined();
  expect(await done("kept")).toEqual(["flight", "-flight", "telling", "closed", "flight", "closed"]);
});

const ended = (name: string) =>
  until(
    `${name} to end`,
    async () => {
      const view = await viewed(name);
      return view.status === "running" ? undefined : view;
    },
    30_000,
  );

test.each(["wait", "step"])("a job that meets its deadline in a %s undoes its work, and has timed out", async (how) => {
  const n = `late ${how}`;
  const { name } = await startJob(store, brief, { n, how }, Date.now());
  expect(await ended(name)).toMatchObject({ status: "timed_out", error: expect.stringContaining("its deadline") });
  const undone = how === "step" ? ["paying", "-flight pay"] : ["-flight"];
  expect(await done(n)).toEqual(["flight", ...undone, "telling", "closed"]);
  // Like any job that has timed out, it can be started again.
  expect((await startJob(store, brief, { n, how }, Date.now())).name).toBe(`${name}~2`);
});

test("a start after a time-out and its clean-up have new idempotency keys", async () => {
  for (const attempt of ["brief_late", "brief_late~2"]) {
    const { name } = await startJob(store, brief, { n: "late", how: "wait" }, Date.now());
    expect(name).toBe(attempt);
    expect(await ended(name)).toMatchObject({ status: "timed_out" });
  }
  expect(await keysOf("late")).toEqual(ofTwo);
});

test("the clean-up after a deadline survives the death of its worker, before or during the clean-up", async () => {
  const [{ name }, before] = await Promise.all([
    startJob(store, brief, { n: "late killed", how: "wait" }, Date.now()),
    startJob(store, brief, { n: "late before", how: "step" }, Date.now()),
  ]);
  await writeFile(join(folder, "hold"), "");
  await did("late killed", "telling");
  worker.signal("SIGKILL");
  await worker[Symbol.asyncDispose]();
  await rm(join(folder, "hold"));
  worker = await start();
  expect([(await ended(name)).status, (await ended(before.name)).status]).toEqual(["timed_out", "timed_out"]);
  expect(await done("late killed")).toEqual(["flight", "-flight", "telling", "telling", "closed"]);
  expect((await done("late before")).filter((line) => line !== "telling")).toEqual([
    ...["flight", "paying", "-flight pay", "closed"],
  ]);
});

test("a clean-up that fails or runs out of time is reported in the job's error", async () => {
  const broken = await startJob(store, booking, { n: "broken", how: "broken" }, Date.now());
  await resonate.asleep(broken.id);
  await store.cancel(broken.name);
  expect(await cleaned(broken.name)).toMatchObject({
    cleanup: "failed",
    error: expect.stringContaining("its clean-up failed: the mail is down"),
  });
  const late = await startJob(store, hasty, { n: "hasty", how: "once" }, Date.now());
  await resonate.asleep(late.id);
  await writeFile(join(folder, "hold"), "");
  await store.cancel(late.name);
  expect(await cleaned(late.name)).toMatchObject({
    cleanup: "failed",
    error: expect.stringContaining("it did not end within 3 seconds"),
  });
  await rm(join(folder, "hold"));
});
