/**
 * Many timers that are due at the same moment, and many that fell due while the embedded server was down, beside other timers and
 * calls that look at them.
 *
 *   npm run load -- --burst [--timers 2000] [--overdue 50000] [--workers 2]
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { runBurst } from "../burst.ts";
import { mapped, number, round, summary } from "./tables.ts";

export async function run(): Promise<number> {
  const { values } = parseArgs({
    options: { burst: { type: "boolean" }, timers: number(2_000), overdue: number(50_000), workers: number(2) },
  });
  const sizes = { timers: Number(values.timers), overdue: Number(values.overdue), workers: Number(values.workers) };
  const data = await mkdtemp(join(tmpdir(), "burst-"));
  try {
    const { through, cpu, ...lists } = await runBurst({ ...sizes, data, say: console.log });
    console.log(`${sizes.overdue} that were overdue: through in ${through.toFixed(1)} s`);
    console.log("CPU time for each of them, in milliseconds:", cpu);
    console.table(mapped(lists, (list) => ({ ...summary(list), most: round(Math.max(...list)) })));
    return 0;
  } finally {
    await rm(data, { recursive: true, force: true });
  }
}
