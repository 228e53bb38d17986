/** The throughput of a worker, from the first call to the last result, compared with the same work by the bare function. */
import { sum } from "simple-statistics";
import type { EdgeProcess } from "../../../cli/launcher/local-edge.ts";
import type { Step } from "../../../core/index.ts";
import { MAX_NAMES } from "../../../core/tools/index.ts";
import { cpuSeconds } from "../../../test/support/usage.ts";
import { freePort } from "../../../testing/stack/port.ts";
import { run, waitForAnswer } from "../../../testing/stack/program.ts";
import { ownGroup, startWorker, type WorkerProcess } from "../../../testing/stack/worker-process.ts";
import { ArchiveEnv, archiveOf } from "../../../tools/weather/open-meteo.ts";
import { type Figure, figure, spreadOf } from "../report/figures.ts";
import { type Bench, inParallel, pidOf } from "../setup/bench.ts";
import { callTool } from "../setup/mcp.ts";

/** How many jobs are started and awaited at once, and the worker's concurrent requests to the archive. */
const JOBS = 200;
const STARTS = 16;
const UPSTREAM = 8;

/** How many jobs run one at a time. */
const SINGLE = 20;

export async function measureJobs(bench: Bench, rounds: number): Promise<Figure[]> {
  await using archive = await startArchive();
  const { env } = ownGroup();
  await using edge = await bench.serve("product", env);
  const settings = { WEATHER_API_URL: archive.url, UPSTREAM_CONCURRENCY: String(UPSTREAM) };
  const months = new Months(`${edge.url}/mcp`, archiveOf(ArchiveEnv.parse(settings)));
  await using worker = await startWorker({ ...bench.resonate.env, ...env, ...settings });

  await months.gather(JOBS);
  await months.fetchBare(JOBS);
  const batches = await measureBatches(months, worker, edge, rounds);
  const singles = await measureSingles(months);
  const rate = (ms: number) => (JOBS / ms) * 1_000;
  return [
    figure("jobs, from start_gathering to await_result", "a second", spreadOf(batches.jobs.map(rate))),
    figure("the same months by the bare function", "a second", spreadOf(batches.bare.map(rate))),
    figure("overhead a job over the bare function, many at once", "ms", spreadOf(overheads(batches, JOBS))),
    figure("overhead a job over the bare function, one at a time", "ms", spreadOf(overheads(singles, 1))),
    figure("requests to Resonate a job, worker", "", spreadOf(batches.requests)),
    figure("CPU time a job, worker", "ms", spreadOf(batches.workerCpu)),
    figure("CPU time a job, edge", "ms", spreadOf(batches.edgeCpu)),
  ];
}

/** Months of weather, each of which is fetched once: by a job, or by the bare function. */
class Months {
  readonly #url: string;
  readonly #archive: ReturnType<typeof archiveOf>;
  #nextMonth = 0;

  constructor(url: string, archive: ReturnType<typeof archiveOf>) {
    this.#url = url;
    this.#archive = archive;
  }

  /** Starts `count` jobs and waits for their results. */
  async gather(count: number): Promise<void> {
    const names = await inParallel(this.#take(count), STARTS, async (month) => {
      return (await callTool(this.#url, "start_gathering", month)).job_name as string;
    });
    const lists = Array.from({ length: Math.ceil(count / MAX_NAMES) }, (_, i) =>
      names.slice(i * MAX_NAMES).slice(0, MAX_NAMES),
    );
    const complete = await inParallel(lists, lists.length, async (job_names) => {
      const answer = await callTool(this.#url, "await_result", { job_names, timeout_seconds: 60 });
      // Results that do not fit into the answer are summarized.
      return Object.keys({ ...answer.results, ...answer.summaries }).length;
    });
    if (sum(complete) !== count) throw new Error(`of ${count} jobs, not all are complete`);
  }

  async fetchBare(count: number): Promise<void> {
    await inParallel(this.#take(count), count, (month) => this.#archive.daily(period(month), BARE));
  }

  #take(count: number) {
    return Array.from({ length: count }, () => place(this.#nextMonth++));
  }
}

/** The durations of the same work by jobs and by the bare function, in milliseconds. */
interface Durations {
  jobs: number[];
  bare: number[];
}

/** The time that each job took beyond the bare function, in milliseconds, for durations of `count` jobs. */
function overheads({ jobs, bare }: Durations, count: number): number[] {
  return jobs.map((ms, i) => (ms - (bare[i] ?? Number.NaN)) / count);
}

/** Many jobs at once; also their requests to Resonate, and their CPU time in milliseconds. */
async function measureBatches(months: Months, worker: WorkerProcess, edge: EdgeProcess, rounds: number) {
  const durations: Durations = { jobs: [], bare: [] };
  const requests: number[] = [];
  const workerCpu: number[] = [];
  const edgeCpu: number[] = [];
  for (let i = 0; i < rounds; i++) {
    const before = {
      worker: cpuSeconds(worker.pid),
      edge: cpuSeconds(pidOf(edge)),
      requests: await requestsOf(worker),
    };
    durations.jobs.push(await timed(() => months.gather(JOBS)));
    workerCpu.push(((cpuSeconds(worker.pid) - before.worker) / JOBS) * 1_000);
    edgeCpu.push(((cpuSeconds(pidOf(edge)) - before.edge) / JOBS) * 1_000);
    requests.push(((await requestsOf(worker)) - before.requests) / JOBS);
    durations.bare.push(await timed(() => months.fetchBare(JOBS)));
  }
  return { ...durations, requests, workerCpu, edgeCpu };
}

async function measureSingles(months: Months): Promise<Durations> {
  const durations: Durations = { jobs: [], bare: [] };
  for (let i = 0; i < SINGLE; i++) {
    durations.jobs.push(await timed(() => months.gather(1)));
    durations.bare.push(await timed(() => months.fetchBare(1)));
  }
  return durations;
}

/** The sample archive in a separate process, so that its CPU time is not counted for another part. */
async function startArchive() {
  const port = await freePort();
  const program = run("tools/weather/sample-archive/archive-process.ts", { args: ["--port", String(port)] });
  await waitForAnswer(`http://127.0.0.1:${port}/health`, program);
  return { url: `http://127.0.0.1:${port}/v1/archive`, [Symbol.asyncDispose]: () => program[Symbol.asyncDispose]() };
}

/** A month at coordinates that the sample archive covers. */
function place(n: number) {
  return { latitude: 47.2 + n / 10_000, longitude: -122.3, year: 2013, month: 5 };
}

/** The number of a worker's requests to Resonate, from its metrics. */
async function requestsOf({ healthUrl }: WorkerProcess): Promise<number> {
  const text = await (await fetch(new URL("/metrics", healthUrl))).text();
  const counts = text.split("\n").filter((line) => line.startsWith("durable_worker_resonate_requests_total{"));
  return counts.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

/** The step context of the bare function. */
const BARE: Step = {
  attempt: 1,
  idempotencyKey: "",
  signal: new AbortController().signal,
  owner: "",
  deadline: Number.MAX_SAFE_INTEGER,
  env: {},
  log: { debug() {}, info() {}, warn() {}, error() {} },
  metrics: { count() {}, observe() {} },
  progress() {},
  file: () => Promise.reject(new Error("a bare function stores nothing")),
  read: () => Promise.reject(new Error("a bare function stores nothing")),
};

function period({ latitude, longitude }: ReturnType<typeof place>) {
  return { latitude, longitude, start_date: "2013-05-01", end_date: "2013-05-31", timezone: "auto" };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}
