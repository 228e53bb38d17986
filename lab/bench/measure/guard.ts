/**
 * What it costs a job that its function is guarded: the engine without network runs the same jobs in two processes, one
 * without the guard, in short turns. Other work on the machine only adds to a turn, so the lower quartiles are compared.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { exactly, type Figure, figure, type Spread, spreadOf } from "../report/figures.ts";

const WORKERS = join(import.meta.dirname, "../workers");

/** How many jobs run in a turn, and how many turns. */
const JOBS = 20;
const TURNS = { short: 100, whole: 800 };

export async function measureGuard(_bench: unknown, short: boolean): Promise<Figure[]> {
  await using cleanup = new AsyncDisposableStack();
  const start = (execArgv: string[]) => {
    const child = fork(join(WORKERS, "guarded.ts"), { execArgv });
    cleanup.defer(() => void child.kill());
    return async (): Promise<number> => {
      child.send(JOBS);
      const [micros] = (await once(child, "message")) as [number];
      return micros / JOBS;
    };
  };
  const sides = [start([]), start(["--import", join(WORKERS, "unguarded.ts")])].map((run) => ({ run, took: [0] }));
  // Until all of it is compiled.
  for (let i = 0; i < 50; i++) for (const { run } of sides) await run();
  for (const side of sides) side.took = [];
  for (let i = 0; i < (short ? TURNS.short : TURNS.whole); i++) {
    // Each is first in turn.
    for (const side of i % 2 === 0 ? sides : sides.toReversed()) side.took.push(await side.run());
  }
  const [guarded, bare] = sides.map(({ took }) => spreadOf(took)) as [Spread, Spread];
  return [
    figure("engine without network: CPU time a job of ten steps, guarded", "µs", guarded),
    figure("the same without the guard", "µs", bare),
    figure("the guard: CPU time a job, by lower quartiles", "µs", exactly(guarded.q1 - bare.q1)),
  ];
}
