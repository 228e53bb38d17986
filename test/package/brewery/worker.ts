import { HOUR, implement } from "../../../core/index.ts";
import { runWorker } from "../../../worker/index.ts";
import { brewAle, tapKeg } from "./tools.ts";

const brew = implement(brewAle, async (ctx, { malts, "dry hopped": hopped = false }) => {
  const steps = await ctx.all(malts, (ctx, malt) => ctx.step("mash", () => mash(malt)), { key: ({ name }) => name });
  await ctx.sleep("fermentation", 24 * HOUR);
  return {
    litres: malts.reduce((sum, { kilograms }) => sum + 5 * kilograms, 0),
    steps,
    remark: hopped ? "hoppy" : null,
  };
});

const mash = ({ name, kilograms }: { name: string; kilograms: number }): [string, number] => [name, 60 + kilograms];

const tap = implement(tapKeg, async (_ctx, { occasion }) => ({ tapped: occasion }));

await runWorker({ functions: [brew, tap] });
