/** The calls of the context through a real worker. */

import { randomBytes } from "node:crypto";
import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PromiseRecord } from "@resonatehq/sdk";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { defineJob } from "../../../core/index.ts";
import type { RemoteStore } from "../../../core/jobs/remote-store.ts";
import { retryJob } from "../../../core/jobs/retry-job.ts";
import { startJob } from "../../../core/jobs/start.ts";
import { childOf, ORDER_TAG } from "../../../core/resonate/codec.ts";
import { ResonateClient } from "../../../core/resonate/connection/client.ts";
import { until } from "../../../testing/stack/program.ts";
import { ownGroup, startWorker } from "../../../testing/stack/worker-process.ts";
import { jobStore } from "../../support/job-store.ts";
import { type Resonate, startResonate } from "../../support/resonate.ts";

const script = "test/worker/scripts/calling-worker.ts";
const { group, namespace, env } = ownGroup();
/** Callbacks need an address and a key. No edge runs there. */
const ADDRESS = { PUBLIC_URL: "http://127.0.0.1:9", VIEW_KEY: randomBytes(32).toString("base64") };

let resonate: Resonate;
let visits: string;
let worker: Awaited<ReturnType<typeof startWorker>>;
let second: Awaited<ReturnType<typeof startWorker>>;
beforeAll(async () => {
  resonate = await startResonate();
  visits = join(await mkdtemp(join(tmpdir(), "visits-")), "visits");
  const start = () =>
    startWorker({ ...resonate.env, ...env, ...ADDRESS, LEASE_SECONDS: "3", VISITS: visits }, { script });
  [worker, second] = await Promise.all([start(), start()]);
});
afterAll(async () => {
  await worker?.[Symbol.asyncDispose]();
  await second?.[Symbol.asyncDispose]();
  await resonate?.[Symbol.asyncDispose]();
});

test("a job cancels a job that it has started by its handle", async () => {
  const id = `${namespace}impatient_1`;
  await resonate.start({ id, func: "impatient", args: { n: 1 }, group });
  expect((await resonate.settled(id)).value.data).toEqual(["late", "nap_1", "cancelled"]);
  expect((await resonate.settled(`${namespace}nap_1`)).state).toBe("rejected_canceled");
});

test("a sleep until the epoch, or before it, ends at once", async () => {
  const times = [0, 1, -1];
  const idOf = (n: number) => `${namespace}late_${n}`;
  for (const n of times) await resonate.start({ id: idOf(n), func: "late", args: { n }, group });
  for (const id of times.map(idOf)) expect((await resonate.settled(id, 30_000)).value.data).toBe("rested");
});

test("a callback times out before the job's deadline", async () => {
  const id = `${namespace}called_1`;
  await resonate.start({ id, func: "called", args: { n: 1 }, group });
  await resonate.asleep(id);
  expect((await resonate.settled(id, 30_000)).value.data).toBe("TimeoutError");
});

test("steps with a rate keep to it across all workers", async () => {
  const ids = Array.from({ length: 10 }, (_, n) => `${namespace}rated_${n}`);
  await Promise.all(ids.map((id, n) => resonate.start({ id, func: "rated", args: { n }, group })));
  const begun = await Promise.all(ids.map(async (id) => (await resonate.settled(id, 30_000)).value.data as number));
  begun.sort((a, b) => a - b);
  // The rate allows two a second, so of any three in a row the last begins a second after the first. Both workers share a clock.
  const spans = begun.slice(2).map((at, i) => at - (begun[i] ?? 0));
  expect(Math.min(...spans)).toBeGreaterThanOrEqual(950);
  expect((begun.at(-1) ?? 0) - (begun[0] ?? 0)).toBeLessThan(12_000);
});

test("two jobs with one key run at once, and a job that is cancelled before its turn is skipped", async () => {
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

test("jobs with one key run one at a time, in the order of their starts, through kill -9", async () => {
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

test("a job that an operator retries waits for the jobs with its key that started since", async () => {
  const job = defineJob({
    kind: "stay",
    args: z.object({ n: z.number() }),
    id: ({ n }) => n,
    concurrency: { key: () => "all", limit: 1 },
  });
  const { url } = resonate;
  const client = new ResonateClient({ url, token: process.env.RESONATE_TOKEN });
  const store = jobStore({ url, token: process.env.RESONATE_TOKEN, group, namespace }, [job], { client });
  const begun = async (expected: string[]) => {
    const lines = async () =>
      (await readFile(visits, "utf8").catch(() => "")).split("\n").filter((line) => /^stay/.test(line));
    await until(`${expected.length} to have begun`, async () => (await lines()).length >= expected.length, 30_000);
    expect(await lines()).toEqual(expected);
  };
  const cancel = (name: string) =>
    resonate.call("promise.settle", { id: namespace + name, state: "rejected_canceled", value: {} });

  await startJob(store, job, { n: 1 }, Date.now());
  await begun(["stay begin 1"]);
  await cancel("stay_1");
  await startJob(store, job, { n: 2 }, Date.now());
  await begun(["stay begin 1", "stay begin 2"]);
  expect(await retryJob({ client, namespace }, "stay_1", true)).toBe("it is started again as stay_1~2");
  await resonate.asleep(`${namespace}stay_1~2`, 30_000);
  await begun(["stay begin 1", "stay begin 2"]);
  await cancel("stay_2");
  await begun(["stay begin 1", "stay begin 2", "stay begin 1"]);
});

test("a job begins after the clean-up of a cancelled job with its key", async () => {
  const { job, store: open } = oneAtATime("tidy", group);
  const store = open();
  const lines = async () =>
    (await readFile(visits, "utf8").catch(() => "")).split("\n").filter((line) => /^tidy/.test(line));
  const begun = (n: number) =>
    until(`job ${n} to begin`, async () => (await lines()).includes(`tidy begin ${n}`) || undefined, 30_000);
  await startJob(store, job, { n: 1 }, Date.now());
  await begun(1);
  await startJob(store, job, { n: 2 }, Date.now());
  await resonate.asleep(`${namespace}tidy_2`, 30_000);
  await store.cancel("tidy_1");
  await begun(2);
  expect(await lines()).toEqual(["tidy begin 1", "tidy end 1", "tidy begin 2"]);
  await store.cancel("tidy_2");
});

/**
 * A kind of which one job runs at a time; `store` makes a store that remembers positions by itself, as one process does, and
 * `requests` has the kinds of the requests of all stores.
 */
function oneAtATime(kind: string, group = "nobody") {
  const job = defineJob({
    kind,
    args: z.object({ n: z.number() }),
    id: ({ n }) => n,
    concurrency: { key: () => "all", limit: 1 },
  });
  const requests: string[] = [];
  const { url } = resonate;
  const token = process.env.RESONATE_TOKEN;
  const store = () =>
    jobStore({ url, token, group, namespace }, [job], {
      client: new ResonateClient({ url, token, onRequest: (each) => requests.push(each) }),
    });
  /** The ids of the jobs' positions, which are in their tags, and the numbers of these positions. */
  const positions = async (count: number) => {
    const jobs = await Promise.all(
      Array.from({ length: count }, (_, i) => resonate.get(`${namespace}${kind}_${i + 1}`)),
    );
    const ids = jobs.map((each) => each?.tags[ORDER_TAG] ?? "");
    return { ids, numbers: ids.map((id) => Number(/\d+$/.exec(id)?.[0])) };
  };
  return { job, requests, store, positions };
}

test("a start under a key costs three requests, however many were started before it", async () => {
  const { job, requests, store, positions } = oneAtATime("queued");
  const one = store();
  for (let n = 1; n <= 40; n++) await startJob(one, job, { n }, Date.now());
  requests.length = 0;
  await startJob(one, job, { n: 41 }, Date.now());
  expect(requests).toEqual(["promise.get", "promise.create", "promise.create"]);
  // Another process takes a position that the first process does not know of.
  await startJob(store(), job, { n: 42 }, Date.now());
  await startJob(one, job, { n: 43 }, Date.now());
  expect((await positions(43)).numbers).toEqual(Array.from({ length: 43 }, (_, i) => i + 1));
});

test("two starts that share a position run in the order in which it names them, even if the first job is created last", async () => {
  const id = (n: number) => `${namespace}visit_eve_${n}`;
  const customers = { customers: ["eve"], count: 1 };
  await resonate.start({ id: `${namespace}crowd_eve`, func: "crowd", args: customers, group });
  const before = (await resonate.settled(id(1), 30_000)).tags[ORDER_TAG] ?? "";
  const next = before.replace(/1$/, "2");
  const starts = { job: id(2), by: "one", also: [{ job: id(3), by: "another" }] };
  const position = childOf(next, Date.now() + 60_000, { param: starts });
  expect((await resonate.call(position.kind, position.data)).head.status).toBe(200);
  const start = (n: number) =>
    resonate.start({ id: id(n), func: "visit", args: { customer: "eve", n }, group, tags: { [ORDER_TAG]: next } });
  await start(3);
  await resonate.asleep(id(3), 30_000);
  await start(2);
  // Much less than the 30 seconds after which a job no longer waits for an earlier one that does not exist.
  await resonate.settled(id(3), 25_000);
  const lines = (await readFile(visits, "utf8")).split("\n").filter((line) => / eve [23]/.test(line));
  expect(lines).toEqual(["begin eve 2", "end eve 2", "begin eve 3", "end eve 3"]);
});

test("fifty simultaneous starts from two processes get one position each at the cost of a few requests", async () => {
  const { job, requests, store, positions } = oneAtATime("crowded");
  const stores = [store(), store()];
  const count = 50;
  const starts = Array.from({ length: count }, (_, i) =>
    startJob(stores[i % 2] as RemoteStore, job, { n: i + 1 }, Date.now()),
  );
  await Promise.all(starts);
  expect(requests.length / count).toBeLessThan(10);
  const { ids } = await positions(count);
  const named: string[] = [];
  for (const id of new Set(ids)) {
    const { param } = (await resonate.get(id)) as PromiseRecord;
    const { job: first, also = [] } = param.data as unknown as { job: string; also?: { job: string }[] };
    for (const each of [first, ...also.map(({ job }) => job)]) {
      named.push(each);
      expect(ids[Number(/\d+$/.exec(each)?.[0]) - 1]).toBe(id);
    }
  }
  expect(new Set(named).size).toBe(count);
  expect(named).toHaveLength(count);
});
