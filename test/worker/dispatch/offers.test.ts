/**
 * How soon work goes on after a dispatch that no worker received: the standalone server repeats it after a time that
 * `infra/compose.yaml` sets. Needs the server's program, which `RESONATE_BIN` names.
 */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { startChild } from "../../../cli/process/child.ts";
import { freePort } from "../../../testing/stack/port.ts";
import { until, waitForAnswer, watch } from "../../../testing/stack/program.ts";
import { ownGroup, startWorker } from "../../../testing/stack/worker-process.ts";
import { startSampleArchive } from "../../../tools/weather/sample-archive/server.ts";
import { resonateAt } from "../../support/resonate.ts";

const binary = process.env.RESONATE_BIN ?? "";

/** The time within which all jobs have to end, in milliseconds. With the server's default they would wait for longer. */
const BEFORE = 25_000;

/** The server with the settings of `infra/compose.yaml` for dispatches, its state on disk, and a group of workers. */
async function scene() {
  await using made = new AsyncDisposableStack();
  const archive = made.use(await startSampleArchive());
  const data = await mkdtemp(join(tmpdir(), "offers-"));
  made.defer(() => rm(data, { recursive: true, force: true }));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const { environment } = parse(await readFile("infra/compose.yaml", "utf8")).services.resonate;
  const settings = Object.entries<string>(environment).filter(([name]) => /TASKS|MESSAGES|BUFFER_SIZE/.test(name));
  const env = {
    ...Object.fromEntries(settings),
    RESONATE_SERVER__PORT: String(port),
    RESONATE_SERVER__BIND: "127.0.0.1",
    RESONATE_STORAGE__SQLITE__PATH: join(data, "resonate.db"),
    RESONATE_OBSERVABILITY__METRICS_PORT: "0",
  };
  const serve = async () => {
    const server = watch(startChild(binary, ["serve", "--level", "warn"], { env, grace: 1_000 }));
    await waitForAnswer(`${url}/ready`, server);
    return server;
  };
  let server = await serve();
  made.defer(() => server[Symbol.asyncDispose]());
  const resonate = resonateAt(url, undefined, undefined);
  const { group, namespace, env: own } = ownGroup();
  const start = async (func: string, name: string, args: object) => {
    const promise = await resonate.start({
      id: namespace + name,
      func,
      args,
      group,
      timeoutAt: Date.now() + 600_000,
    });
    return promise.id;
  };
  const all = made.move();
  return {
    archive,
    resonate,
    worker: (more: Record<string, string> = {}) =>
      startWorker({ ...resonate.env, ...own, WEATHER_API_URL: archive.url, ...more }),
    timer: (name: string, fires_at: string) => start("timer", `timer_${name}`, { timer_name: name, fires_at }),
    gather: (month: number) =>
      start("weather_data", `weather_data_47.6_-122.3_2013_${month}`, {
        latitude: 47.6,
        longitude: -122.3,
        year: 2013,
        month,
      }),
    async killServer() {
      server.signal("SIGKILL");
      await server.exited;
    },
    async bringServerBack() {
      server = await serve();
    },
    /** Starts a clock: a promise that the server itself ends after `BEFORE` milliseconds. */
    async clock() {
      const id = `${namespace}clock`;
      const tags = { "resonate:timer": "true", "resonate:origin": id, "resonate:branch": id, "resonate:parent": id };
      await resonate.call("promise.create", { id, timeoutAt: Date.now() + BEFORE, param: {}, tags });
      return {
        /** Waits for jobs, each of which has to end before the clock. */
        async outrunBy(ids: readonly string[]) {
          const states = async () => Promise.all([id, ...ids].map((each) => resonate.get(each)));
          const ended = await until(
            "the jobs, or the clock, to end",
            async () => {
              const [clock, ...jobs] = await states();
              const isOver = clock?.state !== "pending" || jobs.every((job) => job?.state !== "pending");
              return isOver ? jobs : undefined;
            },
            60_000,
          );
          expect(ended.map((job) => job?.state)).toEqual(ids.map(() => "resolved"));
        },
      };
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

describe.runIf(binary).concurrent("after a dispatch that no worker received", () => {
  test("because the server was killed, timers that fell due in the meantime end soon after it is back", async () => {
    await using the = await scene();
    await using _worker = await the.worker();
    const fires_at = new Date(Date.now() + 6_000).toISOString();
    const ids = await Promise.all(Array.from({ length: 30 }, (_, n) => the.timer(`t${n}`, fires_at)));
    await the.resonate.asleep(ids);
    await the.killServer();
    await until("the timers to be due", () => Date.now() > Date.parse(fires_at));
    await the.bringServerBack();
    await (await the.clock()).outrunBy(ids);
  });

  test("because one worker ended before the next one came, the jobs handed back and those started in between go on", async () => {
    await using the = await scene();
    const answer = the.archive.control.hold(3);
    await using first = await the.worker({ DRAIN_SECONDS: "0.3" });
    const ids = await Promise.all([1, 2, 3].map(the.gather));
    await until("the requests to be under way", () => the.archive.control.requests.total >= 3 || undefined);
    first.signal("SIGTERM");
    expect(await first.exited).toMatchObject({ exitCode: 0 });
    const clock = await the.clock();
    answer();
    ids.push(await the.gather(4));
    await using _second = await the.worker();
    await clock.outrunBy(ids);
    // Each month that was handed back is requested exactly once more.
    expect([1, 2, 3, 4].map((month) => the.archive.control.count(`2013-0${month}`))).toEqual([2, 2, 2, 1]);
  });

  test("because there was no worker yet, the first job goes on soon after one has come", async () => {
    await using the = await scene();
    const clock = await the.clock();
    const id = await the.gather(5);
    await using _worker = await the.worker();
    await clock.outrunBy([id]);
  });
});
