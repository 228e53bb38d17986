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
import { ownGroup, startWorker, type WorkerProcess } from "../../../testing/stack/worker-process.ts";
import { atMost, type Figure, figure, spreadOf } from "../report/figures.ts";
import { type Bench, inParallel } from "../setup/bench.ts";
import { tenSteps } from "../workers/ten-steps.ts";

const WORKERS = join(import.meta.dirname, "../workers");

/** How many workers are measured, and how many jobs run in a turn, at most ten at once. */
const PROCESSES = 3;
const JOBS = 20;
/** How many jobs run after a switch before the next turn, because the engine compiles code again. */
const JOBS_AFTER_SWITCH = 3;
/** How many rounds of four turns each worker has, and how many warm-up rounds before, until its code is compiled. */
const ROUNDS = { short: 12, whole: 80 };
const WARM_UP_ROUNDS = 5;

export async function measureGuard(bench: Bench, short: boolean): Promise<Figure[]> {
  await using cleanup = new AsyncDisposableStack();
  const workers = await inParallel(Array.from({ length: PROCESSES }), 1, async () =>
    cleanup.use(await GuardedWorker.start(bench)),
  );
  for (let i = 0; i < WARM_UP_ROUNDS; i++)
    for (const worker of workers) for (const isGuarded of [true, false]) await worker.turns(isGuarded);
  const { guarded, unguarded, ratios, noise } = await compareTurns(workers, short ? ROUNDS.short : ROUNDS.whole);
  return [
    figure("worker: CPU time a job of ten steps, guarded", "ms", spreadOf(guarded)),
    figure("the same without the guard", "ms", spreadOf(unguarded)),
    figure("the guarded job relative to the other, of turns next to each other", "", spreadOf(ratios), atMost(1.01)),
    figure("two turns without the guard, relative to each other", "", spreadOf(noise)),
  ];
}

/** A worker whose guard is switched between turns. */
class GuardedWorker implements AsyncDisposable {
  readonly #worker: WorkerProcess;
  readonly #store: ReturnType<typeof jobStore>;
  #jobCount = 0;
  #switches = 0;

  constructor(worker: WorkerProcess, store: ReturnType<typeof jobStore>) {
    this.#worker = worker;
    this.#store = store;
  }

  static async start({ resonate }: Bench): Promise<GuardedWorker> {
    const { group, namespace, env } = ownGroup();
    const options = { script: join(WORKERS, "guarded.ts"), imports: [join(WORKERS, "switched.ts")] };
    const worker = await startWorker({ ...resonate.env, ...env }, options);
    const { RESONATE_TOKEN: token } = resonate.env;
    return new GuardedWorker(worker, jobStore({ url: resonate.url, token, group, namespace }, [tenSteps]));
  }

  /** The CPU time a job, in milliseconds, of two turns with the guard or without it. */
  async turns(isGuarded: boolean): Promise<[number, number]> {
    const isOn = this.#switches % 2 === 0;
    if (isOn !== isGuarded) await this.#switch(isGuarded);
    await this.#run(JOBS_AFTER_SWITCH);
    return [await this.#run(JOBS), await this.#run(JOBS)];
  }

  async #switch(isGuarded: boolean): Promise<void> {
    this.#worker.signal("SIGUSR2");
    this.#switches += 1;
    const line = await until(
      "the guard to be switched",
      () => this.#worker.logs().filter(({ msg }) => msg === "guard switched")[this.#switches - 1],
    );
    if (Number(line.replaced) > 0 !== isGuarded) throw new Error(`the guard has ${line.replaced} functions`);
  }

  /** The CPU time a job, in milliseconds. */
  async #run(jobs: number): Promise<number> {
    const before = cpuSeconds(this.#worker.pid);
    await inParallel(Array.from({ length: jobs }), 10, async () => {
      const { name } = await startJob(this.#store, tenSteps, { n: this.#jobCount++ }, Date.now());
      await until(`${name} to end`, () => this.#isOver(name));
    });
    return ((cpuSeconds(this.#worker.pid) - before) / jobs) * 1_000;
  }

  async #isOver(name: string): Promise<boolean> {
    const promise = await this.#store.get(name);
    if (promise?.state === "resolved" && promise.value !== 10) throw new Error(`${name} has done ${promise.value}`);
    return promise?.state === "resolved";
  }

  [Symbol.asyncDispose]() {
    return this.#worker[Symbol.asyncDispose]();
  }
}

/** The CPU time a job with and without the guard, their ratios, and the ratios of turns that were alike. */
async function compareTurns(workers: readonly GuardedWorker[], rounds: number) {
  const guarded: number[] = [];
  const unguarded: number[] = [];
  const ratios: number[] = [];
  const noise: number[] = [];
  for (let i = 0; i < rounds; i++) {
    for (const worker of workers) {
      // Each of the two ways comes first in every other round.
      const first = await worker.turns(i % 2 === 0);
      const second = await worker.turns(i % 2 === 1);
      const [on, off] = i % 2 === 0 ? [first, second] : [second, first];
      guarded.push(...on);
      unguarded.push(...off);
      ratios.push((on[0] + on[1]) / (off[0] + off[1]));
      noise.push(i % 4 < 2 ? off[0] / off[1] : off[1] / off[0]);
    }
  }
  return { guarded, unguarded, ratios, noise };
}
