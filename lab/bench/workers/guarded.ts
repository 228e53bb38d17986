/** Runs jobs through the engine, without network: as many as each message says, and answers with the CPU time in µs. */
import type { Context } from "../../../core/definitions/context.ts";
import { SimulatedJob } from "../../../testing/simulation/simulated-job.ts";

/** Ten steps, half of them side by side, and a sleep, after which it is run again. */
async function job(ctx: Context): Promise<number> {
  let sum = 0;
  for (let n = 0; n < 5; n++) sum += await ctx.step(`step ${n}`, async () => Date.now() && n);
  await ctx.sleep("a while", 1_000);
  const list = await ctx.all([0, 1, 2, 3, 4], (item, n) => item.step("look", async () => Date.now() && n));
  return list.reduce((all, n) => all + n, sum);
}

process.on("message", async (count: number) => {
  const before = process.cpuUsage();
  for (let i = 0; i < count; i++) {
    const end = await new SimulatedJob(job).toEnd();
    if (end.kind !== "complete" || end.value !== 20) throw new Error(`the job ended ${JSON.stringify(end)}`);
  }
  const { user, system } = process.cpuUsage(before);
  process.send?.(user + system);
});
