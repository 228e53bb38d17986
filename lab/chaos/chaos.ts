/**
 * Keeps hundreds of jobs in flight while it kills and pauses the product's processes and makes the archive fail. Then it
 * compares every job with its expected outcome.
 *
 *   npm run chaos -- [--seed N] [--minutes 2] [--workers 3] [--sleepers 50000 [--sqlite FILE | --postgres URL]]
 *
 * The same seed makes the same plan. With RESONATE_URL that server keeps the jobs, and no faults are injected into it.
 * `--sleepers` adds this many sleeping timers, due over four hours, to the embedded server's state or to the database of the
 * server at RESONATE_URL. With RESONATE_HOST=object the Resonate object keeps the jobs. It runs in one workerd with the edge,
 * which is killed as a whole. With RESONATE_RUNNER=1 the runner in the same workerd executes the jobs, without workers. Exits
 * with 0 if nothing was lost, invented, wrong, early or late.
 */
import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import { report } from "../../test/chaos/check/report.ts";
import { makePlan } from "../../test/chaos/plan.ts";
import { runChaos } from "../../test/chaos/run.ts";
import { isRunner, RUNNER_LEASE } from "../../test/support/account.ts";
import { putToSleep } from "./sleepers.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: String(randomInt(2 ** 31)) },
    minutes: { type: "string", default: "2" },
    workers: { type: "string", default: "3" },
    sleepers: { type: "string", default: "0" },
    sqlite: { type: "string" },
    postgres: { type: "string" },
  },
});
const [seed, minutes, workers] = [values.seed, values.minutes, values.workers].map(positive) as [
  number,
  number,
  number,
];
const lease = isRunner ? RUNNER_LEASE : 5_000;
const { sqlite, postgres } = values;
const sleepers = Number(values.sleepers);
const database = sqlite !== undefined ? { sqlite } : postgres !== undefined ? { postgres } : undefined;
if (sleepers > 0 && process.env.RESONATE_URL && !database) throw new Error("--sqlite or --postgres says where they go");

console.log(`chaos --seed ${seed} --minutes ${minutes} --workers ${workers}`);
const plan = makePlan({ seed, seconds: minutes * 60, workers, lease });
const outcome = await runChaos(plan, {
  workers,
  lease,
  quiet: 180_000,
  ...(sleepers > 0 && { putToSleep: (stack, data) => putToSleep(stack, sleepers, database ?? { embedded: data }) }),
  say: console.log,
});
console.log(report(outcome));
console.log(`Repeat with: npm run chaos -- --seed ${seed} --minutes ${minutes} --workers ${workers}`);
process.exit(outcome.violations.length === 0 ? 0 : 1);

function positive(text: string): number {
  const number = Number(text);
  if (!(number > 0)) throw new Error(`not a number greater than 0: ${text}`);
  return number;
}
