/** Measures what runs for one call, after a warm-up: at the edge in this process, and in a worker of its own. */
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { until } from "../../testing/stack/program.ts";
import { startWorker } from "../../testing/stack/worker-process.ts";
import { startSampleArchive } from "../../tools/weather/sample-archive/server.ts";
import { SEATTLE } from "../support/months.ts";
import type { Resonate } from "../support/resonate.ts";
import { rpcHeaders, rpcMessage } from "../support/rpc.ts";
import { type CoveredFunction, commonFunctions } from "./count.ts";
import { takeCoverage } from "./coverage.ts";

/** The months whose jobs warm up, and those whose jobs are measured. */
const WARM_UP_MONTHS = [1, 2];
const MEASURED_MONTHS = [3, 4, 5];

/** How long a process is left alone after a job, in milliseconds, because it may have something to send or to return. */
const AFTERMATH_MS = 400;

/** The functions that each call of `work` runs, after two calls without a measurement. `take` returns those since the last call. */
async function measure(
  work: (month: number) => Promise<void>,
  take: () => Promise<CoveredFunction[]>,
): Promise<CoveredFunction[]> {
  const runs: CoveredFunction[][] = [];
  for (const month of WARM_UP_MONTHS) await work(month);
  for (const month of MEASURED_MONTHS) {
    await take();
    await work(month);
    runs.push(await take());
  }
  return commonFunctions(runs);
}

/** The functions of a start of a job at the edge. No worker executes the job. */
export async function measureStart(resonate: Resonate): Promise<CoveredFunction[]> {
  const start = await openEdge(resonate, "nobody", { latitude: 0, longitude: 0 });
  const work = async (month: number) => {
    await start(month);
    await delay(AFTERMATH_MS);
  };
  return measure(work, takeCoverage);
}

/** The functions of a job in a worker. */
export async function measureJob(resonate: Resonate): Promise<CoveredFunction[]> {
  await using archive = await startSampleArchive();
  const group = "workers";
  const start = await openEdge(resonate, group, SEATTLE);
  const env = { ...resonate.env, RESONATE_GROUP: group, WEATHER_API_URL: archive.url };
  await using worker = await startWorker(env, { imports: [join(import.meta.dirname, "coverage.ts")] });
  const work = async (month: number) => {
    await worker.waitForLog(await start(month), "job done");
    await delay(AFTERMATH_MS);
  };
  const take = async () => {
    const lines = () => worker.logs().filter(({ msg }) => msg === "coverage");
    const before = lines().length;
    worker.signal("SIGUSR2");
    const line = await until("the worker to log its coverage", () => lines()[before]);
    return line.functions as CoveredFunction[];
  };
  // Awaited here, because worker and archive end with this function.
  return await measure(work, take);
}

/**
 * Opens the edge in this process. Returns a function that starts the job of a month at `place`, for the workers of `group`, and
 * resolves with the job's name when all of the request's work is done.
 */
async function openEdge(resonate: Resonate, group: string, place: { latitude: number; longitude: number }) {
  const { default: edge } = await import("../../functions/index.ts");
  const env = { ...resonate.env, AUTH_MODE: "none", RESONATE_GROUP: group, LOG_LEVEL: "error", RATE_LIMIT: "0" };
  return async (month: number): Promise<string> => {
    const params = { name: "start_gathering", arguments: { ...place, year: 2014, month } };
    const request = new Request("http://127.0.0.1:8787/mcp", {
      method: "POST",
      headers: { ...rpcHeaders("tools/call", params), host: "127.0.0.1:8787" },
      body: JSON.stringify(rpcMessage("tools/call", params, {})),
    });
    const work: Promise<unknown>[] = [];
    const context = { waitUntil: (promise: Promise<unknown>) => work.push(promise), passThroughOnException() {} };
    const response = await edge.fetch(request, env, context);
    const text = await response.text();
    await Promise.all(work);
    const name = response.ok && JSON.parse(text).result?.structuredContent?.job_name;
    if (!name) throw new Error(`start_gathering answered ${response.status}: ${text.slice(0, 500)}`);
    return name;
  };
}
