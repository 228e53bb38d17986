import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { VERSION_TAG } from "../../../core/author/job.ts";
import { positionIn } from "../../../core/jobs/order.ts";
import { retryJob } from "../../../core/jobs/retry-job.ts";
import { ResonateClient } from "../../../core/resonate/connection/client.ts";
import { executionMarkId, orderId } from "../../../core/resonate/ids.ts";
import { run, until } from "../../../testing/stack/program.ts";
import { ownGroup, startWorker, type WorkerProcess } from "../../../testing/stack/worker-process.ts";
import { type Resonate, startResonate } from "../../support/resonate.ts";

vi.setConfig({ testTimeout: 60_000, maxConcurrency: 20 });

let resonate: Resonate;
beforeAll(async () => {
  resonate = await startResonate();
});
afterAll(() => resonate?.[Symbol.asyncDispose]());

const script = "test/worker/scripts/odd-worker.ts";

describe.concurrent("beside jobs that misbehave in every way", () => {
  const { group, namespace, env } = ownGroup();
  let worker: WorkerProcess;
  beforeAll(async () => {
    worker = await startWorker({ ...resonate.env, ...env, LEASE_SECONDS: "1" }, { script });
    await start("never_returns");
  });
  afterAll(() => worker?.[Symbol.asyncDispose]());
  const start = (func: string, id = func) =>
    resonate.start({ id: namespace + id, func, args: { id }, group, timeoutAt: Date.now() + 25_000 });

  test.each([
    ["returns_bigint", "the function returned a BigInt: return String(value)"],
    ["returns_circular", "the function returned an object that holds itself at self: return the parts that are needed"],
    ["step_returns_bigint", 'step "ten" returned a BigInt: return String(value)'],
    [
      "waits_for_nothing",
      "the function waits for something that is not ctx's, or for a branch that was given up. Outside of steps only what ctx returns is awaited: put the rest into a step",
    ],
    [
      "reads_of_nothing",
      expect.stringMatching(/^Cannot read properties of undefined .* \(at scripts\/odd-worker\.ts:\d+\)$/),
    ],
    ["throws_nothing", "failed without giving a reason"],
    ["throws_circular", '{"self":"…"}'],
  ])("%s fails, once, and says why", async (func, reason) => {
    await start(func);
    const { state, value } = await resonate.settled(namespace + func);
    expect([state, value.data.message]).toEqual(["rejected", reason]);
    const lines = await worker.waitForLog(func, "job done");
    expect(lines.filter(({ msg }) => msg !== "step failed")).toMatchObject([
      { msg: "job started" },
      { outcome: "failed", reason },
    ]);
  });

  test("an unhandled rejection fails its job, is logged and does not end the worker", async () => {
    await start("leaves_a_rejection");
    const { state, value } = await resonate.settled(`${namespace}leaves_a_rejection`);
    expect([state, value.data.message]).toEqual(["rejected", expect.stringContaining("nobody waits for this")]);
    expect(worker.logs()).toContainEqual(expect.objectContaining({ level: "error", reason: "nobody waits for this" }));
  });

  test.each([
    ["leaves_a_timer", "thrown by a timer"],
    ["listens_to_no_error", expect.stringContaining("ECONNREFUSED")],
  ])("an uncaught error of %s fails its step and does not end the worker", async (func, reason) => {
    await start(func);
    const { state, value } = await resonate.settled(namespace + func);
    expect([state, value.data.message]).toEqual(["rejected", reason]);
    expect(await worker.waitForLog(func, "uncaught error of a step")).toContainEqual(
      expect.objectContaining({ reason }),
    );
  });

  test("an error that a step throws after its end is logged with that step and does not end the worker", async () => {
    await start("throws_when_over");
    expect(await resonate.settled(`${namespace}throws_when_over`)).toMatchObject({ state: "resolved" });
    const lines = await worker.waitForLog("throws_when_over", "uncaught error of a step");
    expect(lines).toContainEqual(expect.objectContaining({ step: "begin", reason: "thrown when it was over" }));
  });

  test("a promise with a version that no function has does not end the worker", async () => {
    const id = `${namespace}odd_version`;
    const data = Buffer.from(JSON.stringify({ func: "echo", args: [], version: -1 })).toString("base64");
    const tags = {
      "resonate:target": `poll://any@${group}`,
      "resonate:origin": id,
      "resonate:branch": id,
      [VERSION_TAG]: "7",
    };
    const timeoutAt = Date.now() + 2_000;
    await resonate.call("promise.create", {
      id,
      timeoutAt,
      param: { headers: {}, data },
      tags: { ...tags, "resonate:parent": id, "resonate:scope": "global" },
    });
    expect(await resonate.settled(id)).toMatchObject({ state: "rejected_timedout" });
    await worker.waitForLog("odd_version", "no function for this job here");
  });

  test("ordinary jobs complete", async () => {
    const ids = Array.from({ length: 10 }, (_, i) => `echo_${i}`);
    for (const id of ids) await start("echo", id);
    for (const id of ids) expect((await resonate.settled(namespace + id)).value.data).toEqual({ id });
  });
});

test("a job that never returns does not delay other kinds, and delays its own kind only until its deadline", async () => {
  const { group, namespace, env } = ownGroup();
  await using worker = await startWorker({ ...resonate.env, ...env, MAX_TASKS: "1" }, { script });
  const start = (id: string, func: string, ms: number) =>
    resonate.start({ id: namespace + id, func, args: {}, group, timeoutAt: Date.now() + ms });
  await start("never_returns_1", "never_returns", 3_000);
  await worker.waitForLog("never_returns_1", "job started");
  await start("never_returns_2", "never_returns", 20_000);
  await start("echo", "echo", 20_000);
  expect(await resonate.settled(`${namespace}echo`)).toMatchObject({ state: "resolved" });
  expect(worker.logsOf("never_returns_2")).toEqual([]);
  await worker.waitForLog("never_returns_1", "job still running at its deadline");
  await worker.waitForLog("never_returns_2", "job started");
});

test("a job that ended each of its workers is left alone for a while and says so, and other jobs go on", async () => {
  const { group, namespace, env } = ownGroup();
  const id = `${namespace}ends_the_process`;
  await resonate.start({ id, func: "ends_the_process", args: {}, group });
  for (let version = 0; version < 5; version++) {
    await resonate.call("task.acquire", { id, version, pid: "lost", ttl: 60_000 });
    await resonate.call("task.release", { id, version: version + 1 });
  }
  const settings = { ...resonate.env, ...env, LEASE_SECONDS: "1" };
  for (let lost = 0; lost < 3; lost++) {
    await using worker = await startWorker(settings, { script });
    expect(await worker.exited).toMatchObject({ exitCode: 3 });
  }
  await using worker = await startWorker(settings, { script });
  const lines = await worker.waitForLog("ends_the_process", "job blocked");
  expect(lines.find(({ msg }) => msg === "job blocked")).toMatchObject({
    reason: expect.stringMatching(/^each worker that ran it was lost: .* is run again at 2/),
  });
  await resonate.start({ id: `${namespace}echo`, func: "echo", args: {}, group });
  expect(await resonate.settled(`${namespace}echo`)).toMatchObject({ state: "resolved" });
  // After that time, or when an operator retries it, the job is run again, whether its code is mended or not.
  const rest = (await resonate.get(executionMarkId(id, 9))) as { state: string; timeoutAt: number };
  expect(rest.state).toBe("pending");
  expect(rest.timeoutAt - Date.now()).toBeLessThan(80_000);
  const client = new ResonateClient({ url: resonate.url, token: process.env.RESONATE_TOKEN });
  expect(await retryJob({ client, namespace }, "ends_the_process")).toBe("it is checked again");
  expect(await worker.exited).toMatchObject({ exitCode: 3 });
});

test("several jobs that end their worker are left alone too, although one may end it before another has left its mark", async () => {
  const { group, namespace, env } = ownGroup();
  const ids = ["a", "b", "c"].map((name) => `${namespace}${name}`);
  for (const id of ids) {
    await resonate.start({ id, func: "ends_the_process", args: {}, group });
    // Three executions left a mark, and a fourth was lost before it could.
    for (let version = 0; version < 9; version++) {
      await resonate.call("task.acquire", { id, version, pid: "lost", ttl: 60_000 });
      if (version >= 5 && version < 8) await mark(id, version + 1, version - 4);
      await resonate.call("task.release", { id, version: version + 1 });
    }
  }
  await using worker = await startWorker({ ...resonate.env, ...env, LEASE_SECONDS: "1" }, { script });
  for (const name of ["a", "b", "c"]) await worker.waitForLog(name, "job blocked");
  await resonate.start({ id: `${namespace}echo`, func: "echo", args: {}, group });
  expect(await resonate.settled(`${namespace}echo`)).toMatchObject({ state: "resolved" });
});

test("a job that waited for its turn in many workers is not taken for one that ends them", async () => {
  const { group, namespace, env } = ownGroup();
  const client = new ResonateClient({ url: resonate.url, token: process.env.RESONATE_TOKEN });
  const chain = orderId(namespace, "takes_turns", "all");
  const [first, second] = [`${namespace}first`, `${namespace}second`];
  for (const id of [first, second]) {
    const timeoutAt = Date.now() + 60_000;
    const tags = await positionIn(chain, client, { id, timeoutAt });
    await resonate.start({
      id,
      func: "takes_turns",
      args: {},
      group: id === first ? "nobody" : group,
      timeoutAt,
      tags,
    });
  }
  for (let version = 0; version < 8; version++) {
    await resonate.call("task.acquire", { id: second, version, pid: "another", ttl: 60_000 });
    await resonate.call("task.release", { id: second, version: version + 1 });
  }
  await using worker = await startWorker({ ...resonate.env, ...env }, { script });
  await resonate.asleep(second);
  expect(await resonate.get(executionMarkId(second, 9))).toBeUndefined();
  await resonate.call("promise.settle", { id: first, state: "resolved", value: {} });
  expect(await resonate.settled(second)).toMatchObject({ state: "resolved" });
  expect(worker.logsOf("second").map(({ msg }) => msg)).not.toContain("job blocked");
});

/** Leaves the mark that a worker makes before an execution that may be lost. */
async function mark(id: string, version: number, begun: number): Promise<void> {
  const param = { headers: {}, data: Buffer.from(JSON.stringify({ executions: begun })).toString("base64") };
  const tags = {
    "resonate:origin": id,
    "resonate:branch": id,
    "resonate:parent": id,
    "resonate:scope": "global",
    "resonate:timer": "true",
  };
  await resonate.call("promise.create", { id: executionMarkId(id, version), timeoutAt: Date.now() + 1, param, tags });
}

test("a worker whose thread is blocked ends and names the blocking line", async () => {
  await using program = run("test/worker/scripts/blocked-thread.ts");
  expect(await program.exited).toMatchObject({ signal: "SIGKILL" });
  const line = await until("a line in the log", () => program.logs().at(0));
  expect(line.msg).toContain("the thread is held");
  expect(line.at).toContainEqual(expect.stringMatching(/^loop .*blocked-thread\.ts:\d+$/));
});

test("as many jobs execute at once as MAX_TASKS says, and all get their turn", async () => {
  const { group, namespace, env } = ownGroup();
  await using _worker = await startWorker({ ...resonate.env, ...env, MAX_TASKS: "3" }, { script });
  const ids = Array.from({ length: 30 }, (_, i) => `${namespace}counts_${i}`);
  await Promise.all(ids.map((id) => resonate.start({ id, func: "counts", args: {}, group })));
  const counts = await Promise.all(ids.map(async (id) => (await resonate.settled(id)).value.data));
  expect(Math.max(...counts)).toBe(3);
});
