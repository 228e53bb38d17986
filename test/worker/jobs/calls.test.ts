/** The calls of the context through a real worker. */
import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { defineJob } from "../../../core/index.ts";
import { RemoteStore } from "../../../core/jobs/remote-store.ts";
import { startJob } from "../../../core/jobs/starting/start.ts";
import { ResonateClient } from "../../../core/store/connection/client.ts";
import { until } from "../../../testing/simulation/program.ts";
import { ownGroup, startWorker } from "../../../testing/stack/worker-process.ts";
import { type Resonate, startResonate } from "../../support/resonate.ts";

const script = "test/worker/scripts/calling-worker.ts";
const { group, namespace, env } = ownGroup();

let resonate: Resonate;
let visits: string;
let worker: Awaited<ReturnType<typeof startWorker>>;
let second: Awaited<ReturnType<typeof startWorker>>;
beforeAll(async () => {
  resonate = await startResonate();
  visits = join(await mkdtemp(join(tmpdir(), "visits-")), "visits");
  const start = () => startWorker({ ...resonate.env, ...env, LEASE_SECONDS: "3", VISITS: visits }, { script });
  [worker, second] = await Promise.all([start(), start()]);
});
afterAll(async () => {
  await worker?.[Symbol.asyncDispose]();
  await second?.[Symbol.asyncDispose]();
  await resonate?.[Symbol.asyncDispose]();
});

test("a job is cancelled by the handle of the one that started it", { timeout: 30_000 }, async () => {
  const id = `${namespace}impatient_1`;
  await resonate.start({ id, func: "impatient", args: { n: 1 }, group });
  expect((await resonate.settled(id)).value.data).toEqual(["late", "nap_1", "cancelled"]);
  expect((await resonate.settled(`${namespace}nap_1`)).state).toBe("rejected_canceled");
});

test("of steps with a rate no more begin in its span than it says, on all workers", { timeout: 60_000 }, async () => {
  const ids = Array.from({ length: 10 }, (_, n) => `${namespace}rated_${n}`);
  await Promise.all(ids.map((id, n) => resonate.start({ id, func: "rated", args: { n }, group })));
  const begun = await Promise.all(ids.map(async (id) => (await resonate.settled(id, 30_000)).value.data as number));
  begun.sort((a, b) => a - b);
  // Of any three, the last begins a second after the first; the workers' clock is the same.
  const spans = begun.slice(2).map((at, i) => at - (begun[i] ?? 0));
  expect(Math.min(...spans)).toBeGreaterThanOrEqual(950);
  expect((begun.at(-1) ?? 0) - (begun[0] ?? 0)).toBeLessThan(12_000);
});

test("of jobs with one key two run at once, and one that is cancelled in its wait is passed", {
  timeout: 60_000,
}, async () => {
  const id = `${namespace}pairs_6`;
  await resonate.start({ id, func: "pairs", args: { n: 6 }, group });
  const fine = "fulfilled";
  expect((await resonate.settled(id, 40_000)).value.data).toEqual([fine, fine, fine, "rejected", fine, fine]);
  const own = (await readFile(visits, "utf8")).split("\n").filter((line) => line.startsWith("pair "));
  // A visit whose worker lost its lease on a busy machine may be made twice.
  const running = new Set<string>();
  let most = 0;
  for (const line of own) {
    const job = line.slice(line.lastIndexOf(" "));
    if (line.startsWith("pair begin")) running.add(job);
    else running.delete(job);
    most = Math.max(most, running.size);
  }
  expect([new Set(own).size, most]).toEqual([10, 2]);
  expect(own).not.toContain("pair begin 4");
});

test("jobs with one key run one at a time, in the order of their starts, through kill -9", {
  timeout: 90_000,
}, async () => {
  const id = `${namespace}crowd_1`;
  const [customers, count] = [["ada", "bob"], 8];
  await resonate.start({ id, func: "crowd", args: { customers, count }, group, timeoutAt: Date.now() + 80_000 });
  const lines = async () => (await readFile(visits, "utf8").catch(() => "")).trim().split("\n");
  await until("some visits to have ended", async () => (await lines()).length >= 8 || undefined, 30_000);
  second.signal("SIGKILL");
  expect((await resonate.settled(id, 60_000)).value.data).toBe(customers.length * count);
  for (const customer of customers) {
    // A step whose worker died may have been done twice.
    const own = (await lines()).filter((line) => line.includes(customer));
    const once = own.filter((line, i) => line !== own[i - 1]);
    const numbers = Array.from({ length: count }, (_, i) => i + 1);
    expect(once).toEqual(numbers.flatMap((n) => [`begin ${customer} ${n}`, `end ${customer} ${n}`]));
  }
});

test("a start under a key costs three requests, however many were started before it", { timeout: 30_000 }, async () => {
  const job = defineJob({
    kind: "queued",
    args: z.object({ n: z.number() }),
    id: ({ n }) => n,
    concurrency: { key: () => "all", limit: 1 },
  });
  const requests: string[] = [];
  const { url } = resonate;
  const store = () =>
    new RemoteStore(
      { url, group: "nobody", namespace },
      [job],
      {},
      new ResonateClient({ url, onRequest: (kind) => requests.push(kind) }),
    );
  const one = store();
  for (let n = 1; n <= 40; n++) await startJob(one, job, { n }, Date.now());
  requests.length = 0;
  await startJob(one, job, { n: 41 }, Date.now());
  expect(requests).toEqual(["promise.get", "promise.create", "promise.create"]);
  // Another process takes a place, which the first does not know of.
  await startJob(store(), job, { n: 42 }, Date.now());
  await startJob(one, job, { n: 43 }, Date.now());
  const places = await Promise.all(
    [41, 42, 43].map(async (n) => Object.entries((await resonate.get(`${namespace}queued_${n}`))?.tags ?? {})),
  );
  const order = places.map((tags) => tags.flatMap(([, value]) => /limit.*0\.(\d+)$/.exec(value)?.[1] ?? []));
  expect(order).toEqual([["41"], ["42"], ["43"]]);
});
