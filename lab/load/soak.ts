/**
 * Keeps an edge in workerd under a steady load, and checks that its memory does not grow.
 *
 *   npm run soak -- [--minutes 10] [--rate 40]
 *
 * `--rate` is the number of requests per second. The run reads the JavaScript heap, after a garbage collection, and the memory of
 * the process ninety times at equal intervals. The first third is warm-up. Of the rest, the first and the last quarter are
 * compared by their lowest values, because requests under way only add memory. The heap may grow by 10 %, the process by 15 %.
 * Exits with 0 if both grow by no more than that and every answer was correct.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { inspectHeap } from "../../test/support/heap.ts";
import { startStack } from "../../test/support/stack.ts";
import { memory } from "../../test/support/usage.ts";
import { freePort } from "../../testing/stack/port.ts";
import { startTraffic } from "./traffic.ts";

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "10" }, rate: { type: "string", default: "40" } },
});
const [minutes, rate] = [Number(values.minutes), Number(values.rate)];
const SAMPLES = 90;
const LIMITS = { heap: 0.1, rss: 0.15 };

/** In megabytes; `at` in minutes since the start. */
interface Sample {
  at: number;
  heap: number;
  rss: number;
}

const before = loadavg()[0];
const data = await mkdtemp(join(tmpdir(), "soak-"));
const samples: Sample[] = [];
const inspectorPort = await freePort();
const stack = await startStack({ own: { data }, inspectorPort, bindings: { LOG_LEVEL: "warn" } });
const traffic = startTraffic(stack, rate);
try {
  using heap = await inspectHeap(inspectorPort);
  const start = Date.now();
  for (let n = 1; n <= SAMPLES; n++) {
    const at = (n / SAMPLES) * minutes;
    await delay(Math.max(0, start + at * 60_000 - Date.now()));
    samples.push({ at, heap: await heap.used(), rss: memory(stack.edge.process.pid) });
  }
} finally {
  await traffic.stop();
  await stack[Symbol.asyncDispose]();
  await rm(data, { recursive: true, force: true });
}

const measured = samples.slice(SAMPLES / 3);
const quarter = measured.length / 4;
const lowest = (some: Sample[], of: "heap" | "rss") => Math.min(...some.map((sample) => sample[of]));
const growth = (of: "heap" | "rss") =>
  lowest(measured.slice(-quarter), of) / lowest(measured.slice(0, quarter), of) - 1;
const isFlat = growth("heap") <= LIMITS.heap && growth("rss") <= LIMITS.rss;

const { requests, kinds, wrong } = traffic;
console.log(`${requests} requests in ${minutes} minutes; load of the machine before: ${before}`);
console.table(kinds);
console.log("Megabytes, by minute");
console.table(
  Object.fromEntries(
    samples
      .filter((_, n) => (n + 1) % (SAMPLES / 15) === 0)
      .map(({ at, heap, rss }) => [at.toFixed(1), { heap: heap.toFixed(2), process: rss.toFixed(0) }]),
  ),
);
console.log(`Heap ${percent(growth("heap"))} (flat: ${percent(LIMITS.heap)} at most)`);
console.log(`Process ${percent(growth("rss"))} (flat: ${percent(LIMITS.rss)} at most)`);
for (const what of wrong.slice(0, 10)) console.log(`Wrong: ${what}`);
console.log(isFlat ? "Flat." : "Not flat.");
process.exit(isFlat && wrong.length === 0 ? 0 : 1);

function percent(share: number): string {
  return `${share < 0 ? "" : "+"}${(share * 100).toFixed(1)} %`;
}
