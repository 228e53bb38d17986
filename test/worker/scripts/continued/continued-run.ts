import { existsSync } from "node:fs";
import { appendFile } from "node:fs/promises";
import { HOUR, implement, NonRetryableError } from "../../../../core/index.ts";
import { patrol } from "./continued.ts";

const FOLDER = process.env.FOLDER ?? "";

export const patrolRun = implement(patrol, async (ctx, { of, round, last, ms }) => {
  const write = (what: string) => appendFile(`${FOLDER}/${of}`, `${what}\n`);
  await ctx.step("walk", () => write(`${round}`));
  await ctx.step("cross", () => {
    if ([3, 12].includes(round) && existsSync(`${FOLDER}/flood`)) throw new NonRetryableError("the bridge is down");
  });
  await ctx.emit({ round });
  ctx.progress(round, last);
  const { spent } = await ctx.spend(5, { of: "steps" });
  try {
    await ctx.sleep("a rest", round === last && last > 10 ? HOUR : ms);
  } catch (error) {
    await ctx.cleanup((ctx) => ctx.step("go home", () => write(`home after ${round}`)));
    throw error;
  }
  if (round === last) return { rounds: round, spent };
  return ctx.continueAs({ of, round: of === "moat" ? 1.5 : round + 1, last, ms });
});
