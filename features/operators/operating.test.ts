/** Alerts to operators: each rule, how long it has to hold, and that an alert is reported until it has arrived. */

import { readFile } from "node:fs/promises";
import { setTimeout as delay, setImmediate } from "node:timers/promises";
import pino from "pino";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import type { Job } from "../../core/author/job.ts";
import { JOB_FORMAT_VERSION } from "../../core/jobs/form.ts";
import type { Action, RefusedRequest } from "../../core/jobs/operators-api.ts";
import type { WorkerReport } from "../../core/jobs/worker-report.ts";
import { ResonateClient } from "../../core/resonate/connection/client.ts";
import { Sealing } from "../../core/resonate/sealing.ts";
import { readConfig } from "../../functions/config.ts";
import { type RunningServer, startResonate } from "../../server/node/http.ts";
import { createStorage } from "../../test/support/object-storage.ts";
import { openTables } from "../../test/support/open-tables.ts";
import { cleanUp } from "../clean-up/start.ts";
import { RULES } from "./alerts.ts";
import { Operating } from "./operating.ts";
import { OPERATE_TABLES } from "./tables.ts";

const tea = { kind: "tea", version: 2, owns: (name: string) => name.startsWith("tea_") };
const definitions = { jobs: [tea as Job], tools: [] };
beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 20, 12, 30, 30), toFake: ["Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

let server: RunningServer;
let client: ResonateClient;
const create = (id: string, tags = {}) =>
  client.call({ kind: "promise.create", data: { id, timeoutAt: Date.now() + 1e9, param: {}, tags } });
const startServer = (port = 0) =>
  startResonate({ port, data: undefined, token: undefined, log: pino({ level: "silent" }) });
beforeAll(async () => {
  server = await startServer();
  client = new ResonateClient({ url: server.url, codec: new Sealing() });
  await create("tea_pot");
});
afterAll(() => server.close());

/** The answer to a request that is carried out. */
function granted<T extends object>(answer: T | RefusedRequest): T {
  if ("refused" in answer) throw new Error(answer.refused);
  return answer;
}

/** An operators' object with a web hook, which fails while `isUp` is false. */
function scene(more: Record<string, unknown> = { RESONATE_URL: server.url }, storage = createStorage()) {
  const hook = { isUp: true, told: [] as string[] };
  const receive = async (_url: unknown, { body }: { body: string }) => {
    const { name, state, says } = JSON.parse(body);
    if (hook.isUp) hook.told.push(`${name} ${state}: ${says}`);
    return new Response(null, { status: hook.isUp ? 204 : 503 });
  };
  const env = { ALERT_URL: "http://127.0.0.1:9/alerts", ...more };
  const config = readConfig({ ...env, AUTH_MODE: "none", OPERATE: "local", MAX_STORED_BYTES: "1000" });
  const operating = new Operating({
    sql: openTables([OPERATE_TABLES], storage),
    client: new ResonateClient({ url: server.url, codec: new Sealing() }),
    config,
    env,
    definitions,
    cancelFeatures: [cleanUp],
    fetchTo: () => receive as never,
    alarmAt: null,
    arm: async () => {},
  });
  operating.load();
  let n = 0;
  const report = (more: Partial<WorkerReport> = {}) =>
    operating.report({
      worker: "w",
      n: ++n,
      group: "workers",
      connected: true,
      form: JOB_FORMAT_VERSION,
      kinds: { tea: 2 },
      slots: { running: 1, waiting: 0, most: 1 },
      counts: [],
      failed: [],
      waits: [],
      slowest: [],
      ...more,
    });
  /** Lets `seconds` seconds pass, and returns what the web hook then receives. */
  const after = async (seconds: number) => {
    hook.told = [];
    vi.setSystemTime(Date.now() + seconds * 1_000);
    await operating.run();
    return hook.told;
  };
  return { hook, operating, report, after };
}

const caller = { key: "abc~", started: 1, running: 0, bytes: 10, failing: 0, rows: 3 };

test.each<[string, (the: ReturnType<typeof scene>, isBad: boolean) => void]>([
  [
    "jobs-fail begun: many jobs fail: 5 of tea",
    ({ report }, isBad) => report({ counts: [["tea", isBad ? "failed" : "complete", isBad ? 5 : 15]] }),
  ],
  [
    "jobs-blocked begun: blocked: 1 of tea",
    ({ report }, isBad) => report({ waits: [{ job: "tea_pot", kind: "tea", ...(isBad && { state: "blocked" }) }] }),
  ],
  [
    "old-worker begun: a worker runs an earlier version of tea",
    ({ report }, isBad) => report({ kinds: { tea: isBad ? 1 : 2 } }),
  ],
  [
    "mixed-versions begun: the worker w keeps jobs in form 2, and this edge in form 1",
    ({ report }, isBad) => report(isBad ? { form: 2, connected: false } : {}),
  ],
  [
    "storage-full begun: almost full: the storage of",
    ({ report, operating }, isBad) => {
      report();
      operating.usage({ ...caller, bytes: isBad ? 950 : 10 });
    },
  ],
  [
    "deliveries-fail begun: web hooks fail of",
    ({ report, operating }, isBad) => {
      report();
      operating.usage({ ...caller, failing: isBad ? 1 : 0 });
    },
  ],
])("%s, reported at once and only once, until it is over", async (says, bring) => {
  const the = scene();
  bring(the, false);
  expect(await the.after(1)).toEqual([]);
  bring(the, true);
  the.hook.isUp = false;
  expect(await the.after(1)).toEqual([]);
  the.hook.isUp = true;
  expect(await the.after(1)).toEqual([expect.stringContaining(says)]);
  expect(await the.after(1)).toEqual([]);
  bring(the, false);
  const [name] = says.split(" ");
  the.hook.isUp = false;
  await the.after(1);
  the.hook.isUp = true;
  expect(await the.after(1)).toEqual([expect.stringContaining(`${name} over`)]);
});

test("an alert that begins while the overview is read as well is reported once", async () => {
  const { hook, operating, report } = scene();
  await create("tea_late", { "resonate:target": "poll://any@workers" });
  operating.started("tea", "tea_late");
  vi.setSystemTime(Date.now() + 61_000);
  report();
  await Promise.all([operating.run(), operating.overview("hour"), operating.overview("day")]);
  await setImmediate();
  expect(hook.told).toEqual(["not-taken begun: no worker takes tea (worker group workers)"]);
});

test("a check that waits for the Resonate server does not end an alert that begins meanwhile", async () => {
  const { hook, operating, report } = scene();
  await create("tea_slow", { "resonate:target": "poll://any@workers" });
  operating.started("tea", "tea_slow");
  vi.setSystemTime(Date.now() + 61_000);
  report();
  const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { send } = ResonateClient.prototype;
  const slow = vi.spyOn(ResonateClient.prototype, "send").mockImplementation(async function (
    this: ResonateClient,
    ...of
  ) {
    if (of[0] === "task.get") {
      asked.resolve();
      await answered.promise;
    }
    return send.apply(this, of as never) as never;
  });
  const alarm = operating.run();
  await asked.promise;
  slow.mockRestore();
  report({ counts: [["tea", "failed", 5]] });
  const overview = operating.overview("hour");
  await Promise.race([overview, delay(500)]);
  answered.resolve();
  await Promise.all([alarm, overview]);
  await setImmediate();
  expect(hook.told.filter((told) => told.startsWith("jobs-fail"))).toEqual([
    expect.stringContaining("jobs-fail begun"),
  ]);
});

test("no-worker begins a minute after the last report, or half a minute after the last worker has lost its connection", async () => {
  const { report, after } = scene();
  expect(await after(60)).toEqual([]); // No worker has ever reported.
  report();
  expect(await after(29)).toEqual([]);
  expect(await after(2)).toEqual([]);
  expect(await after(30)).toEqual([
    expect.stringMatching(/^no-worker begun: no worker takes jobs; .*2026-11-20T12:31:30/),
  ]);
  report();
  expect(await after(1)).toEqual([expect.stringMatching(/^no-worker over/)]);
  report({ connected: false });
  expect(await after(1)).toEqual([]);
  report(); // The worker has restarted.
  expect(await after(29)).toEqual([]);
  report({ connected: false });
  await after(1);
  expect(await after(30)).toEqual([expect.stringMatching(/^no-worker begun/)]);
});

test("sleeping runners count as workers and never as outdated, and a deployment without runners lists none", async () => {
  const ofServer = (url: string, init: RequestInit) => fetch(url.replace("http://resonate", server.url), init);
  const RESONATE = { idFromName: (name: string) => ({ name }), get: () => ({ fetch: ofServer }) };
  const storage = createStorage();
  const { operating, report, after } = scene({ RESONATE, RUNNER: {} }, storage);
  report({ worker: "runners", isRunner: true, kinds: { tea: 1 } });
  expect(await after(1)).toEqual([]);
  expect(await after(3_600)).toEqual([]);
  expect((await operating.overview("hour")).workers).toMatchObject([{ worker: "runners", isRunner: true }]);
  const later = scene({ RESONATE, RUNNER: {}, RUNS_IN: "container" }, storage);
  expect((await later.operating.overview("hour")).workers).toEqual([]);
});

test("slots-taken begins when jobs have waited for a slot for five minutes", async () => {
  const { report, after } = scene();
  const waits = () => report({ slots: { running: 1, waiting: 3, most: 1 } });
  for (let minutes = 0; minutes < 10; minutes++) {
    waits();
    expect(await after(28)).toEqual([]);
    if (minutes !== 4) continue;
    report();
    await after(1);
  }
  waits();
  await after(1);
  for (let i = 0; i < 10; i++) {
    waits();
    const told = await after(28);
    if (told.length > 0) return expect(told).toEqual(["slots-taken begun: 3 jobs wait for a slot"]);
  }
  expect.unreachable();
});

test("not-taken begins when a job has waited a minute for a worker, while slots are free, and ends when one takes it", async () => {
  const { operating, report, after } = scene();
  const start = async (job: string) => {
    await create(job, { "resonate:target": "poll://any@workers" });
    operating.started(job.split("_", 1)[0] ?? "", job);
  };
  const take = (id: string, version = 0) =>
    client.send("task.acquire", { id, version, pid: "p", ttl: 1e9 }, { origin: id });
  /** Lets `n` half minutes pass, in which the worker reports, and returns what the web hook receives. */
  const halves = async (n: number, more: Partial<WorkerReport> = {}) => {
    const told: string[] = [];
    for (let i = 0; i < n; i++) {
      report(more);
      told.push(...(await after(29)));
      report(more);
      told.push(...(await after(1)));
    }
    return told;
  };
  const stood = async () => (await operating.overview("hour")).waits.filter(({ state }) => state === "worker");
  await Promise.all([start("tea_1"), start("mate_1")]);
  await take("mate_1");
  expect(await halves(1)).toEqual([]);
  expect(await stood()).toEqual([]);
  expect(await halves(2)).toEqual(["not-taken begun: no worker takes tea (worker group workers)"]);
  expect(await stood()).toMatchObject([{ kind: "tea", n: 1 }]);
  await take("tea_1");
  expect(await halves(1)).toEqual([expect.stringMatching(/^not-taken over/)]);
  expect(await stood()).toEqual([]);

  // A job that is held or waits for a slot raises no alert.
  await start("tea_2");
  const held = operating.act("olga", { do: "pause", of: { kind: "tea" } });
  expect(await halves(4)).toEqual([]);
  await held;
  await operating.act("olga", { do: "resume", of: { kind: "tea" } });
  expect(await halves(2, { slots: { running: 1, waiting: 1, most: 1 } })).toEqual([]);
  expect(await halves(1)).toEqual([expect.stringMatching(/^not-taken begun/)]);
  await take("tea_2");
  expect(await halves(1)).toEqual([expect.stringMatching(/^not-taken over/)]);

  // A worker has taken the job and released it, as it cannot run it.
  await start("tea_3");
  await take("tea_3");
  await client.send("task.release", { id: "tea_3", version: 1 }, { origin: "tea_3" });
  expect(await halves(3)).toEqual([]);
  report({ waits: [{ job: "tea_3", kind: "tea", state: "worker", says: "a worker lacks its function" }] });
  expect(await halves(3)).toEqual([expect.stringMatching(/^not-taken begun/)]);
  report({ waits: [{ job: "tea_3", kind: "tea" }] });
  expect(await halves(1)).toEqual([expect.stringMatching(/^not-taken over/)]);
});

test("no-server begins when the Resonate server has not answered for half a minute while workers report", async () => {
  const { report, after } = scene();
  report();
  expect(await after(1)).toEqual([]);
  await server.close();
  try {
    expect(await after(1)).toEqual([]);
    report();
    expect(await after(29)).toEqual([]);
    expect(await after(1)).toEqual(["no-server begun: the Resonate server does not answer"]);
  } finally {
    server = await startServer(Number(new URL(server.url).port));
  }
  report();
  expect(await after(1)).toEqual([expect.stringMatching(/^no-server over/)]);
});

test("a pause begins before a long action on many jobs has ended", async () => {
  const { operating } = scene();
  const jobs = Array.from({ length: 200 }, (_, i) => `tea_none_${i}`);
  const acts = [
    operating.act("olga", { do: "retry", jobs }),
    operating.act("olga", { do: "cancel", jobs: ["tea_none"] }),
  ];
  // Both are noted before the server can answer a request.
  await setImmediate();
  expect(operating.auditLog({}).map(({ what }) => what)).toEqual(["cancel", "retry"]);
  await Promise.all([...acts, operating.act("olga", { do: "pause", of: { kind: "mate" } })]);
  // On a slow machine the actions outlast the calls, and the alarm waits for them.
  await operating.run();
  const done = operating.auditLog({ after: 0 }).filter(({ what }) => what.endsWith(": done"));
  expect(done.map(({ what }) => what)).toEqual(["pause: done", "retry: done", "cancel: done"]);
  await operating.act("olga", { do: "resume", of: { kind: "mate" } });
});

test.each(["retry", "cancel"] as const)(
  "a job that no key opens does not stop the %s of others, and stays listed",
  async (what) => {
    const { operating, report } = scene();
    const sealing = new ResonateClient({ url: server.url, codec: new Sealing(Buffer.alloc(32, 1).toString("base64")) });
    const data = { id: "tea_sealed", timeoutAt: Date.now() + 1e9, param: { data: btoa('"secret"') }, tags: {} };
    await sealing.call({ kind: "promise.create", data });
    const jobs = ["tea_sealed", "tea_none"];
    const failed = jobs.map((job) => ({ job, kind: "tea", reason: "no water", at: Date.now() }));
    report({ failed, waits: jobs.map((job) => ({ job, kind: "tea", state: "blocked" as const })) });
    const { is_over, outcomes } = granted(await operating.act("olga", { do: what, jobs } as Action));
    expect([is_over, outcomes]).toEqual([
      true,
      {
        tea_none: "there is no such job",
        tea_sealed: expect.stringMatching(/^not done: what it keeps is encrypted with a key/),
      },
    ]);
    const left = granted(await operating.jobs({ state: what === "retry" ? "failed" : "blocked" }));
    expect(left.jobs).toEqual([expect.objectContaining({ job: "tea_sealed" })]);
  },
);

test("an action on a filter's jobs reaches exactly those of its preview, and the audit log has the filter as it was", async () => {
  const { operating, report } = scene();
  const waiting = (job: string, state: "failing" | "blocked" | "sleeping", says: string) => ({
    job,
    kind: "tea",
    state,
    says,
  });
  report({
    waits: [
      waiting("tea_a", "blocked", "another order"),
      waiting("tea_b", "blocked", "a step is missing"),
      waiting("tea_c", "failing", "another order"),
      waiting("tea_d", "sleeping", "until noon"),
    ],
  });
  const filter = { state: "blocked", reason: "another order" } as const;
  const preview = granted(await operating.preview(filter));
  expect(preview).toMatchObject({ count: 1, targets: 1, jobs: [{ job: "tea_a", says: "another order" }] });
  // What fits the filter later is not in the preview.
  report({ waits: [waiting("tea_b", "blocked", "another order"), waiting("tea_e", "blocked", "another order")] });
  const action = { do: "cancel", preview: preview.preview } as const;
  const state = granted(await operating.act("olga", action));
  expect(state).toMatchObject({ total: 1, outcomes: { tea_a: "there is no such job" } });
  expect(
    granted(await operating.jobs(filter))
      .jobs.map(({ job }) => job)
      .sort(),
  ).toEqual(["tea_b", "tea_e"]);
  const [done, noted] = operating.auditLog({});
  expect(noted).toMatchObject({ what: "cancel", about: { preview: preview.preview, filter, count: 1 } });
  expect(done).toMatchObject({ what: "cancel: done", about: { of: noted?.n, jobs: 1 } });

  vi.setSystemTime(Date.now() + 3_600_001);
  expect(await operating.act("olga", action)).toEqual({ refused: expect.stringContaining("no preview") });
  expect(operating.auditLog({})).toHaveLength(2);
});

test.each<Action>([
  { do: "block", caller: " anyone" },
  { do: "unblock", caller: "eve" },
  { do: "pause", of: { caller: "Eve" } },
])("an action on a caller whom nobody knows is refused, and changes nothing: %j", async (action) => {
  const { operating } = scene();
  expect(await operating.act("olga", action)).toEqual({ refused: expect.stringContaining("No caller has the name") });
  expect([operating.auditLog({}), operating.settings().blocked]).toEqual([[], []]);
  expect(await operating.preview({ caller: "Eve" })).toHaveProperty("refused");
});

test("the audit log has a caller's call whose arguments are null", () => {
  const { operating } = scene();
  operating.noteCall("ada", "cancel_job", { arguments: null });
  expect(operating.auditLog({})).toMatchObject([{ who: "ada", what: "cancel_job", about: { jobs: "[]" } }]);
});

test("a pause that the server refuses ends, the operator learns why, and later actions are done", async () => {
  const { operating } = scene();
  const jobs = Array.from({ length: 10_000 }, (_, i) => `tea_${i}_${"x".repeat(400)}`);
  const refused = await operating.act("olga", { do: "pause", of: { jobs } });
  expect(refused).toMatchObject({
    is_over: true,
    outcomes: { pause: "not done: the request is larger than it takes" },
  });
  expect(await operating.act("olga", { do: "pause", of: { kind: "mate" } })).toMatchObject({
    is_over: true,
    outcomes: {},
  });
  expect(operating.auditLog({}).map(({ what, about }) => [what, about.reason])).toEqual([
    ["pause: done", undefined],
    ["pause", undefined],
    ["pause: not done", "the request is larger than it takes"],
    ["pause", undefined],
  ]);
  await operating.act("olga", { do: "resume", of: { kind: "mate" } });
});

test("an action waits while the server does not answer, and the log says so", async () => {
  const said = vi.spyOn(console, "warn").mockImplementation(() => {});
  const { operating, after } = scene();
  await server.close();
  const asked = operating.act("olga", { do: "retry", jobs: ["tea_none"] });
  try {
    expect(granted(await asked).is_over).toBe(false);
    await vi.waitFor(() => expect(said).toHaveBeenCalledWith(expect.stringContaining("it could not be reached")));
  } finally {
    server = await startServer(Number(new URL(server.url).port));
    said.mockRestore();
  }
  await after(3);
  expect(operating.action(1)).toMatchObject({ is_over: true, outcomes: { tea_none: "there is no such job" } });
});

test("no-server stays while no worker reports and the server is not asked, until it answers", async () => {
  const { report, after } = scene();
  report();
  await after(1);
  await server.close();
  try {
    await after(1);
    report();
    expect(await after(31)).toEqual([expect.stringMatching(/^no-server begun/)]);
    expect(await after(660)).toEqual([expect.stringMatching(/^no-worker begun/)]);
    expect(await after(60)).toEqual([]);
  } finally {
    server = await startServer(Number(new URL(server.url).port));
  }
  report();
  expect((await after(1)).map((each) => each.split(":")[0])).toEqual(["no-worker over", "no-server over"]);
});

test("jobs-blocked ends when the blocked jobs have ended without a report, however many wait", async () => {
  const { report, after } = scene();
  const of = (n: number, name: string) => Array.from({ length: n }, (_, i) => ({ job: `${name}_${i}`, kind: "tea" }));
  const blocked = of(25, "tea_stuck").map((each) => ({ ...each, state: "blocked" as const }));
  await Promise.all(blocked.map(({ job }) => create(job)));
  report({ waits: [...of(30, "tea_slow").map((each) => ({ ...each, state: "answer" as const })), ...blocked] });
  expect(await after(1)).toEqual([expect.stringMatching(/^jobs-blocked begun: blocked: 25 of tea/)]);
  const end = (id: string) =>
    client.call({ kind: "promise.settle", data: { id, state: "rejected_canceled", value: {} } });
  for (const { job } of blocked.slice(1)) await end(job);
  report();
  for (let i = 0; i < 4; i++) expect(await after(5)).toEqual([]);
  await end("tea_stuck_0");
  report();
  expect([...(await after(5)), ...(await after(5))]).toEqual([expect.stringMatching(/^jobs-blocked over/)]);
});

test("each alert has its paragraph in the runbook", async () => {
  const runbook = await readFile(new URL("../../docs/operations.md", import.meta.url), "utf8");
  const said = [...runbook.matchAll(/^### ([a-z]+-[a-z]+)\n\n\S/gm)].map(([, name]) => name);
  expect(said.toSorted()).toEqual(Object.keys(RULES).toSorted());
});
