/**
 * What it costs a worker that its functions are guarded: workers with the guard and without it run the same jobs on the
 * same server, in short turns. Other work on the machine only adds to a turn, so the lower quartiles are compared. Two
 * workers that differ in nothing show what the comparison cannot tell apart.
 */
import { join } from "node:path";
import { RemoteStore } from "../../../core/jobs/remote-store.ts";
import { startJob } from "../../../core/jobs/starting/start.ts";
import { until } from "../../../testing/simulation/program.ts";
import { ownGroup, startWorker } from "../../../testing/stack/worker-process.ts";
import { atMost, exactly, type Figure, figure, type Spread, spreadOf } from "../report/figures.ts";
import { type Bench, inParallel } from "../setup/bench.ts";
import { cpuSeconds } from "../setup/usage.ts";
import { tenSteps } from "../workers/ten-steps.ts";

const WORKERS = join(import.meta.dirname, "../workers");

/** How many jobs run in a turn, and how many turns. */
const JOBS = 10;
const TURNS = { short: 60, whole: 200 };
/** Turns until the code is compiled. */
const WARM = 40;

export async function measureGuard({ resonate }: Bench, short: boolean): Promise<Figure[]> {
  await using cleanup = new AsyncDisposableStack();
  const begin = async (imports: string[]) => {
    const { group, namespace, env } = ownGroup();
    const settings = { ...resonate.env, ...env };
    const worker = cleanup.use(await startWorker(settings, { script: join(WORKERS, "guarded.ts"), imports }));
    const store = new RemoteStore({ url: resonate.url, token: resonate.env.RESONATE_TOKEN, group, namespace }, [
      tenSteps,
    ]);
    let used = 0;
    const isOver = async (name: string) => {
      const promise = await store.get(name);
      if (promise?.state === "resolved" && promise.value !== 10) throw new Error(`${name} has done ${promise.value}`);
      return promise?.state === "resolved";
    };
    return async (): Promise<number> => {
      const before = cpuSeconds(worker.pid);
      await inParallel(Array.from({ length: JOBS }), JOBS, async () => {
        const { name } = await startJob(store, tenSteps, { n: used++ }, Date.now());
        await until(`${name} to end`, () => isOver(name));
      });
      return ((cpuSeconds(worker.pid) - before) / JOBS) * 1_000;
    };
  };
  const unguarded = [join(WORKERS, "unguarded.ts")];
  const sides = await inParallel([[], unguarded, unguarded], 1, async (imports) => {
    return { run: await begin(imports), took: [] as number[] };
  });
  for (let i = 0; i < WARM; i++) for (const { run } of sides) await run();
  for (let i = 0; i < (short ? TURNS.short : TURNS.whole); i++) {
    // Each is first in turn.
    for (let k = 0; k < sides.length; k++) {
      const side = sides[(i + k) % sides.length];
      side?.took.push(await side.run());
    }
  }
  const [guarded, bare, same] = sides.map(({ took }) => spreadOf(took)) as [Spread, Spread, Spread];
  return [
    figure("worker: CPU time a job of ten steps, guarded", "ms", guarded),
    figure("the same without the guard", "ms", bare),
    figure("the guarded job relative to the other", "", exactly(guarded.q1 / bare.q1), atMost(1.01)),
    figure("a second worker without the guard, relative to the first", "", exactly(same.q1 / bare.q1)),
  ];
}
