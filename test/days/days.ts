/**
 * Simulated days of a deployment: edge, worker and embedded server run with a moved clock, callers start jobs all day, and
 * the server removes jobs after its retention time.
 */
import { copyFile, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import PQueue from "p-queue";
import { startEdge } from "../../cli/launcher/local-edge.ts";
import { ResonateClient } from "../../core/resonate/connection/client.ts";
import { becomesIdle } from "../../testing/stack/job-states.ts";
import { freePort } from "../../testing/stack/port.ts";
import { run, waitForAnswer } from "../../testing/stack/program.ts";
import { startWorker } from "../../testing/stack/worker-process.ts";
import { CLOCK_PATH } from "../../testing/time/movable-edge.ts";
import { startTime } from "../../testing/time/stack-time.ts";
import { startSampleArchive } from "../../tools/weather/sample-archive/server.ts";
import { bearerBindings, callerAt } from "../auth/support.ts";
import { EMBEDDED } from "../support/resonate.ts";
import { cpuSeconds, memory } from "../support/usage.ts";

const DAY = 86_400_000;

/** The number of simultaneous calls, and of retries of a call that was refused because the server was too busy. */
const AT_ONCE = 16;
const AGAIN = 5;

export interface Days {
  days: number;
  /** How many jobs are started per day. */
  jobs: number;
  /** The number of parts of a day. */
  parts: number;
  callers: number;
  /** The server's retention time. */
  retentionDays: number;
  /** Whether a server starts on a copy of the database each night. */
  restarts: boolean;
}

/** The state at the end of a day, after the removal of expired data. */
export interface DayEnd {
  day: number;
  /** Jobs started so far, and retried calls. */
  started: number;
  again: number;
  /** The rows of each table. A job has a task, and promises for its steps, its quota reservation and its entry in the caller's list. */
  rows: { promises: number; tasks: number; listeners: number };
  /** The size of the database with its log, and the part in use, in megabytes. */
  file: number;
  used: number;
  /** Memory of the processes, in megabytes. */
  server: number;
  worker: number;
  edge: number;
  /** For servers that start on a copy of the database: the least CPU time until one is ready, in milliseconds, and its least memory then. */
  start: number | undefined;
  startedWith: number | undefined;
}

/** Starts jobs as several callers do: 70 % gather a new month each, the others are timers of up to 20 hours. */
class JobStarter {
  /** How many jobs were started, and how many starts were repeated because the server could not be reached. */
  started = 0;
  repeated = 0;
  readonly #callers: readonly ReturnType<typeof callerAt>[];

  constructor(callers: readonly ReturnType<typeof callerAt>[]) {
    this.#callers = callers;
  }

  async start(): Promise<void> {
    const n = this.started++;
    for (let failed = 0; ;) {
      try {
        return await this.#startJob(n);
      } catch (error) {
        if (++failed > AGAIN || !/is unavailable/.test(String(error))) throw error;
        this.repeated += 1;
      }
    }
  }

  async #startJob(n: number): Promise<void> {
    const caller = this.#callers[n % this.#callers.length];
    if (n % 10 < 7) {
      const [year, month] = [2012 + (n % 4), 1 + (Math.floor(n / 4) % 12)];
      const latitude = 40 + Math.floor(n / 48) / 10_000;
      await caller?.call("start_gathering", { latitude, longitude: -122.3321, year, month });
    } else {
      const seconds = 600 + (Math.floor(n / 10) % 20) * 3_600;
      await caller?.call("set_timer", { timer_name: `t${n}`, seconds });
    }
  }
}

/** @throws {Error} if a job cannot be started or does not end */
export async function* simulateDays({ days, jobs, parts, callers, ...options }: Days): AsyncGenerator<DayEnd> {
  await using started = new AsyncDisposableStack();
  let origin = "";
  const tellEdge = async (ahead: number) => {
    await fetch(origin + CLOCK_PATH, { method: "POST", body: `${ahead}` });
  };
  const time = started.use(await startTime(["worker", "resonate"], tellEdge));
  const archive = started.use(await startSampleArchive());
  const data = await mkdtemp(join(tmpdir(), "days-"));
  started.defer(() => rm(data, { recursive: true }));

  const port = String(await freePort());
  const { imports, env: follows } = time.movable("resonate");
  const settings = { RESONATE_LOCAL_TOKEN: "", RETENTION_DAYS: String(options.retentionDays) };
  const server = started.use(
    run(EMBEDDED, { args: ["--port", port, "--data", data], env: { ...settings, ...follows }, imports }),
  );
  const url = `http://127.0.0.1:${port}`;
  await waitForAnswer(`${url}/ready`, server);
  const address = { RESONATE_URL: url, RESONATE_TOKEN: "", RESONATE_GROUP: "workers", RESONATE_NAMESPACE: "" };
  const worked = time.movable("worker");
  const worker = started.use(
    await startWorker({ ...address, WEATHER_API_URL: archive.url, ...worked.env }, { imports: worked.imports }),
  );
  const tokens = Object.fromEntries(
    Array.from({ length: callers }, (_, n) => [`caller${n}`, `static-token-of-caller-${n}`]),
  );
  const bindings = {
    ...address,
    ...bearerBindings(tokens),
    MAX_JOBS: String(jobs),
    RATE_LIMIT: "0",
    LOG_LEVEL: "error",
  };
  const edge = started.use(await startEdge({ port: 0, bindings, entry: "test/days/movable-edge.ts" }));
  origin = edge.url;

  const starter = new JobStarter(Object.values(tokens).map((token) => callerAt(`${edge.url}/mcp`, token)));
  const client = new ResonateClient({ url });
  const queue = new PQueue({ concurrency: AT_ONCE });
  for (let day = 1; day <= days; day++) {
    for (let part = 0; part < parts; part++) {
      const count = Math.floor(((part + 1) * jobs) / parts) - Math.floor((part * jobs) / parts);
      await queue.addAll(Array.from({ length: count }, () => () => starter.start()));
      if (!(await becomesIdle(client, 120_000))) throw new Error("jobs do not come to their end");
      await time.move(DAY / parts);
    }
    if (!(await becomesIdle(client, 120_000))) throw new Error("jobs do not come to their end");
    const left = await settled(data);
    const used = (pid = 0) => Math.round(memory(pid));
    const processes = { server: used(server.pid), worker: used(worker.pid), edge: used(edge.process.pid) };
    const restarted = options.restarts
      ? await startAgain(data, settings)
      : { start: undefined, startedWith: undefined };
    yield { day, started: starter.started, again: starter.repeated, ...left, ...processes, ...restarted };
  }
}

/** The size of the database once it no longer changes, because the server has removed all expired data. */
async function settled(data: string): Promise<Pick<DayEnd, "rows" | "file" | "used">> {
  for (let before = -1; ;) {
    const found = await withCopy(data, async (dir) => {
      const db = new DatabaseSync(join(dir, "resonate.db"));
      const count = (from: string) =>
        Number((db.prepare(`SELECT count(*) AS n FROM ${from}`).get() as { n: number }).n);
      const pragma = (name: string) => Number(Object.values(db.prepare(`PRAGMA ${name}`).get() as object)[0]);
      const rows = {
        promises: count("promises"),
        tasks: count("tasks"),
        listeners: count("listeners"),
      };
      const used = ((pragma("page_count") - pragma("freelist_count")) * pragma("page_size")) / 1e6;
      db.close();
      return { rows, used };
    });
    if (found.rows.promises === before) {
      const sizes = await Promise.all(["", "-wal"].map((end) => stat(join(data, `resonate.db${end}`))));
      return { ...found, file: sizes.reduce((sum, { size }) => sum + size, 0) / 1e6 };
    }
    before = found.rows.promises;
    await delay(500);
  }
}

/** How often a server starts on each night's copy. The least is its cost: what else the machine does adds up to a quarter to one. */
const STARTS_PER_NIGHT = 5;

/** Starts servers on a copy with the machine's own clock, so that nothing expires or times out. */
async function startAgain(
  data: string,
  settings: Record<string, string>,
): Promise<Pick<DayEnd, "start" | "startedWith">> {
  return withCopy(data, async (dir) => {
    const starts: { start: number; startedWith: number }[] = [];
    while (starts.length < STARTS_PER_NIGHT) {
      const port = String(await freePort());
      await using server = run(EMBEDDED, { args: ["--port", port, "--data", dir], env: settings });
      await waitForAnswer(`http://127.0.0.1:${port}/ready`, server);
      starts.push({ start: Math.round(cpuSeconds(server.pid) * 1_000), startedWith: Math.round(memory(server.pid)) });
    }
    return {
      start: Math.min(...starts.map(({ start }) => start)),
      startedWith: Math.min(...starts.map(({ startedWith }) => startedWith)),
    };
  });
}

/**
 * Passes a copy of the database to `work`, because only the server may open the original. If the server writes during the copy,
 * the copy may be damaged; then it is made again.
 */
async function withCopy<T>(data: string, work: (dir: string) => Promise<T>): Promise<T> {
  for (let failed = 0; ;) {
    const dir = await mkdtemp(join(tmpdir(), "days-copy-"));
    try {
      for (const end of ["", "-wal"]) await copyFile(join(data, `resonate.db${end}`), join(dir, `resonate.db${end}`));
      return await work(dir);
    } catch (error) {
      if (++failed > 5) throw error;
    } finally {
      await rm(dir, { recursive: true });
    }
  }
}
