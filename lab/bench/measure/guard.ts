/**
 * The cost of the guard of durable functions for a worker. Equal processes differ by several percent, so each worker is compared
 * with itself: the guard is switched off and on between short turns. Adjacent turns are compared; pairs of turns without the guard
 * show the smallest difference that the comparison can detect.
 */

import { join } from "node:path";
import { startJob } from "../../../core/jobs/index.ts";
import { jobStore } from "../../../test/support/job-store.ts";
import { cpuSeconds } from "../../../test/support/usage.ts";
import { until } from "../../../testing/stack/program.ts";
import { ownGroup, startWorker } from "../../../testing/stack/worker-process.ts";
import { atMost, type Figure, figure, spreadOf } from "../report/figures.ts";
import { type Bench, inParallel } from "../setup/bench.ts";
import { tenSteps } from "../workers/ten-steps.ts";

const WORKERS = join(import.meta.dirname, "../workers");

/** How many workers are measured, and how many jobs run in a turn, at most ten at once. */
const PROCESSES = 3;
const JOBS = 20;
/** How many jobs run after a switch before the next turn, because the engine compiles code again. */
const AFTER_SWITCH = 3;
/** How many rounds of four turns each worker has, and how many warm-up rounds before, until its code is compiled. */
const ROUNDS = { short: 12, whole: 80 };
const WARM = 5;

export async function measureGuard({ resonate }: Bench, short: boolean): Promise<Figure[]> {
  await using cleanup = new AsyncDisposableStack();
  const begin = async () => {
    const { group, namespace, env } = ownGroup();
    const options = { script: join(WORKERS, "guarded.ts"), imports: [join(WORKERS, "switched.ts")] };
    const worker = cleanup.use(await startWorker({ ...resonate.env, ...env }, options));
    const { RESONATE_TOKEN: token } = resonate.env;
    const store = jobStore({ url: resonate.url, token, group, namespace }, [tenSteps]);
    let used = 0;
    let switches = 0;
    const isOver = async (name: string) => {
      const promise = await store.get(name);
      if (promise?.state === "resolved" && promise.value !== 10) throw new Error(`${name} has done ${promise.value}`);
      return promise?.state === "resolved";
    };
    const run = async (jobs: number) => {
      const before = cpuSeconds(worker.pid);
      await inParallel(Array.from({ length: jobs }), 10, async () => {
        const { name } = await startJob(store, tenSteps, { n: used++ }, Date.now());
        await until(`${name} to end`, () => isOver(name));
      });
      return ((cpuSeconds(worker.pid) - before) / jobs) * 1_000;
    };
    /** Two turns with the guard, or without it. */
    return async (isGuarded: boolean): Promise<[number, number]> => {
      const isOn = switches % 2 === 0;
      if (isOn !== isGuarded) {
        worker.signal("SIGUSR2");
        switches += 1;
        const line = await until(
          "the guard to be switched",
          () => worker.logs().filter(({ msg }) => msg === "guard switched")[switches - 1],
        );
        if (Number(line.replaced) > 0 !== isGuarded) throw new Error(`the guard has ${line.replaced} functions`);
      }
      await run(AFTER_SWITCH);
      return [await run(JOBS), await run(JOBS)];
    };
  };
  const workers = await inParallel(Array.from({ length: PROCESSES }), 1, begin);
  for (let i = 0; i < WARM; i++)
    for (const turns of workers) for (const isGuarded of [true, false]) await turns(isGuarded);
  const guarded: number[] = [];
  const bare: number[] = [];
  const ratios: number[] = [];
  const same: number[] = [];
  for (let i = 0; i < (short ? ROUNDS.short : ROUNDS.whole); i++) {
    for (const turns of workers) {
      // Each of the two ways comes first in every other round.
      const first = await turns(i % 2 === 0);
      const second = await turns(i % 2 === 1);
      const [on, off] = i % 2 === 0 ? [first, second] : [second, first];
      guarded.push(...on);
      bare.push(...off);
      ratios.push((on[0] + on[1]) / (off[0] + off[1]));
      same.push(i % 4 < 2 ? off[0] / off[1] : off[1] / off[0]);
    }
  }
  return [
    figure("worker: CPU time a job of ten steps, guarded", "ms", spreadOf(guarded)),
    figure("the same without the guard", "ms", spreadOf(bare)),
    figure("the guarded job relative to the other, of turns next to each other", "", spreadOf(ratios), atMost(1.01)),
    figure("two turns without the guard, relative to each other", "", spreadOf(same)),
  ];
}
