/**
 * `npm run upgrade:load [-- --seconds 20 --callers 20]`: callers start timers of a second and wait for them, one after another,
 * while the workers are restarted one by one and then the edge is replaced. Prints, for the times before and during this, how long
 * starts took, and how long waits exceeded the second, at p50 and p99. A refused call is repeated, as its error says, and counts
 * with the time of all its tries. Exits with 1 if a job is lost.
 */
import { parseArgs } from "node:util";
import { callerAt } from "../../test/auth/support.ts";
import { startStack } from "../../test/support/stack.ts";

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "20" }, callers: { type: "string", default: "20" } },
});
const [seconds, callers] = [Number(values.seconds), Number(values.callers)];

const TIMER = 1;

interface Phase {
  name: string;
  starts: number[];
  waits: number[];
  repeated: number;
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const newPhase = (name: string): Phase => ({ name, starts: [], waits: [], repeated: 0 });

await using stack = await startStack({ workers: 2, own: true, env: { DRAIN_SECONDS: "5", LEASE_SECONDS: "5" } });
const caller = callerAt(stack.url, "");
const started: string[] = [];
let phase = newPhase("warming up");
let isOver = false;

/** Calls a tool until it answers; resolves with the answer, and the milliseconds of all tries. */
async function call(name: string, args: object) {
  const began = performance.now();
  const of = phase;
  for (;;) {
    // biome-ignore lint/suspicious/noExplicitAny: the shapes of the tools' answers are known
    const answer: any = await caller.call(name, args).catch(() => undefined);
    if (answer) return { answer, ms: performance.now() - began, of };
    of.repeated += 1;
    await pause(100);
  }
}

async function load(id: number): Promise<void> {
  for (let n = 0; !isOver; n++) {
    const timer_name = `load ${id} ${n}`;
    const start = await call("set_timer", { timer_name, seconds: TIMER });
    start.of.starts.push(start.ms);
    const job = start.answer.job_name;
    started.push(job);
    const due = performance.now() + TIMER * 1_000;
    let of = phase;
    for (let isDone = false; !isDone; ) {
      const wait = await call("await_result", { job_names: [job] });
      of = wait.of;
      isDone = job in wait.answer.results;
    }
    of.waits.push(performance.now() - due);
  }
}

const loads = Array.from({ length: callers }, (_, id) => load(id));
await pause(5_000);
const phases: Phase[] = [];
const enter = (name: string) => {
  phase = newPhase(name);
  phases.push(phase);
};

enter("before");
await pause(seconds * 1_000);
enter("rolling restart of two workers");
for (const end = Date.now() + seconds * 1_000; Date.now() < end; ) {
  for (const worker of stack.workers) {
    await worker.end("SIGTERM");
    await worker.start();
    await pause(1_000);
  }
}
enter("edge replaced");
await stack.edge.end("SIGTERM");
await stack.edge.start();
await pause(Math.max(seconds * 500, 5_000));
enter("after");
await pause(seconds * 500);
isOver = true;
await Promise.all(loads);

const at = (times: number[], part: number) => {
  const sorted = times.toSorted((a, b) => a - b);
  return `${Math.round(sorted[Math.min(Math.floor(sorted.length * part), sorted.length - 1)] ?? Number.NaN)} ms`;
};
for (const { name, starts, waits, repeated } of phases)
  console.log(
    `${name}: ${starts.length} starts, p50 ${at(starts, 0.5)}, p99 ${at(starts, 0.99)}; ` +
      `${waits.length} waits, p50 ${at(waits, 0.5)}, p99 ${at(waits, 0.99)}; ${repeated} calls repeated`,
  );
let lost = 0;
for (let i = 0; i < started.length; i += 50) {
  const { statuses } = await caller.call("probe_status", { job_names: started.slice(i, i + 50) });
  lost += statuses.filter(({ status }: { status: string }) => status !== "complete").length;
}
console.log(`${started.length} jobs, ${lost} not complete`);
process.exitCode = lost > 0 ? 1 : 0;
