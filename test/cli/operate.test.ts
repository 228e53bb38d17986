/** The operator's commands for jobs: pause and resume a kind, list jobs in trouble, and retry them. */

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { startJob } from "../../core/jobs/start.ts";
import { run, until } from "../../testing/stack/program.ts";
import { ownGroup, startWorker } from "../../testing/stack/worker-process.ts";
import { jobStore } from "../support/job-store.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { strictForecast, titles } from "../worker/scripts/changed/changing.ts";

vi.setConfig({ testTimeout: 150_000 });

let resonate: Resonate;
beforeAll(async () => {
  resonate = await startResonate();
});
afterAll(() => resonate?.[Symbol.asyncDispose]());

/** A deployment for one test, with its operator's commands. */
function deployment() {
  const { group, namespace, env } = ownGroup();
  const settings = { ...resonate.env, ...env, LEASE_SECONDS: "2" };
  return {
    group,
    namespace,
    settings,
    command: async (...args: string[]) => {
      await using program = run("cli/main.ts", { args, env: settings });
      expect(await program.exited).toMatchObject({ exitCode: 0 });
      return program.output();
    },
    timer: (timer_name: string) =>
      resonate.start({
        id: `${namespace}timer_${timer_name}`,
        func: "timer",
        args: { timer_name, fires_at: new Date().toISOString() },
        group,
        timeoutAt: Date.now() + 600_000,
      }),
  };
}

test("a paused kind waits until it is resumed, even across restarts of the worker", async () => {
  const { command, timer, settings, namespace } = deployment();
  expect(await command("resume", "timer")).toBe("Jobs of the kind timer were not paused.\n");
  const since = /^Jobs of the kind timer are paused since (\S+)\.\n$/.exec(await command("pause", "timer"))?.[1];
  {
    await using worker = await startWorker(settings);
    await timer("one");
    await worker.waitForLog("timer_one", "job paused");
  }
  await using worker = await startWorker(settings);
  await timer("two");
  await worker.waitForLog("timer_two", "job paused");
  // A second pause keeps the time of the first.
  expect(await command("pause", "timer")).toContain(`since ${since}`);
  const [timers] = JSON.parse(await command("jobs", "--json")).kinds;
  expect(timers).toEqual({ kind: "timer", running: 2, paused_since: Date.parse(since ?? ""), trouble: [] });
  const tasks = await Promise.all(["one", "two"].map((name) => resonate.task(`${namespace}timer_${name}`)));
  expect(tasks.map((task) => task?.state)).toEqual(["suspended", "suspended"]);

  expect(await command("resume", "timer")).toBe("Jobs of the kind timer continue.\n");
  for (const name of ["one", "two"]) {
    expect(await resonate.settled(`${namespace}timer_${name}`, 60_000)).toMatchObject({ state: "resolved" });
  }
  await command("pause", "timer");
  await using _another = await startWorker(settings);
  await command("resume", "timer");
  await timer("three");
  expect(await resonate.settled(`${namespace}timer_three`, 60_000)).toMatchObject({ state: "resolved" });
});

test("a blocked job is listed, and tried again by `retry`", async () => {
  const { command, settings, group, namespace } = deployment();
  const folder = await mkdtemp(join(tmpdir(), "operate-"));
  const script = "test/worker/scripts/changed/changing-worker.ts";
  const worker = (CODE: string) => startWorker({ ...settings, CODE, FOLDER: folder }, { script });
  const store = jobStore({ url: resonate.url, group, namespace }, [titles]);
  try {
    let job: Awaited<ReturnType<typeof startJob>>;
    {
      await using first = await worker("first");
      job = await startJob(store, titles, { n: 1 }, Date.now());
      await resonate.asleep(job.id, 30_000);
      expect(await command("retry", job.name)).toMatch(/^titles_1: it is not blocked/);
      first.signal("SIGKILL");
    }
    await using changed = await worker("changed");
    await changed.waitForLog(job.name, "job blocked");
    await resonate.asleep(job.id, 30_000);
    expect(await command("jobs")).toMatch(
      /^titles: 1 under way, 1 blocked, 0 failing, 0 asking\n {2}blocked {2}titles_1: /,
    );
    expect(await command("retry", job.name, "titles_2")).toBe(
      "titles_1: it is checked again\ntitles_2: there is no such job\n",
    );
    await changed.waitForLog(job.name, "job blocked", 2);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("a failed job is started again from its last good step by `retry`", async () => {
  const { command, settings, group, namespace } = deployment();
  const folder = await mkdtemp(join(tmpdir(), "operate-"));
  const store = jobStore({ url: resonate.url, group, namespace }, [strictForecast]);
  const ended = (name: string) =>
    until(`${name} to end`, async () => {
      const promise = await store.get(name);
      return promise?.state === "pending" ? undefined : promise;
    });
  try {
    const script = "test/worker/scripts/changed/changing-worker.ts";
    await using _worker = await startWorker({ ...settings, FOLDER: folder }, { script });
    await writeFile(join(folder, "no-mail"), "");
    const { name } = await startJob(store, strictForecast, { name: "today", city: "Athens" }, Date.now());
    expect(await ended(name)).toMatchObject({ state: "rejected" });
    await rm(join(folder, "no-mail"));
    expect(await command("retry", name)).toBe(`${name}: it is started again as ${name}~2\n`);
    expect(await ended(`${name}~2`)).toMatchObject({
      value: { city: "Athens", weather: "sunny in Athens" },
      resumption: { from: name },
    });
    expect(await readFile(join(folder, "asked"), "utf8")).toBe("x");
    expect(await command("retry", name, `${name}~2`)).toBe(`${name}: it is complete\n${name}~2: it is complete\n`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
