import { until } from "../../../testing/stack/program.ts";
import { ownGroup, startWorker } from "../../../testing/stack/worker-process.ts";
import { startSampleArchive } from "../../../tools/weather/sample-archive/server.ts";
import { type Figure, figure, spreadOf } from "../report/figures.ts";
import type { Bench } from "../setup/bench.ts";

const WORKERS = 3;
const JOBS = 6;

/**
 * How long a job pauses after its worker was killed. Several workers with the default lease, each with jobs that wait for the
 * archive, are killed at once. A job has resumed when the archive gets the request for its month again.
 */
export async function measureRecovery({ resonate }: Bench): Promise<Figure[]> {
  await using archive = await startSampleArchive();
  archive.control.inject({ fault: { kind: "hang" }, times: JOBS });
  const { group, namespace, env } = ownGroup();
  const launch = () => startWorker({ ...resonate.env, ...env, WEATHER_API_URL: archive.url });
  await using started = new AsyncDisposableStack();
  const killed = await Promise.all(Array.from({ length: WORKERS }, launch));
  for (const worker of killed) started.use(worker);

  const ids = await Promise.all(
    Array.from({ length: JOBS }, async (_, i) => {
      const args = { latitude: 47.6, longitude: -122.3, year: 2013, month: i + 1 };
      const id = `${namespace}weather_data_47.6_-122.3_2013_${i + 1}`;
      await resonate.start({ id, func: "weather_data", args, group });
      return id;
    }),
  );
  await until("every job to wait for the archive", () => archive.control.requests.total === JOBS);
  started.use(await launch());
  const killedAt = Date.now();
  for (const worker of killed) worker.signal("SIGKILL");
  await Promise.all(ids.map((id) => resonate.settled(id, 60_000)));
  const again = archive.control.requests.log.slice(JOBS).map(({ at }) => at - killedAt);
  return [figure("kill -9 of a worker to its jobs' resumption (lease of 15 s)", "ms", spreadOf(again))];
}
