/**
 * Ten ordinary callers at two edges, for so many seconds alone and then beside one who asks for all that he may.
 *
 *   npm run load -- --hostile [--seconds 60]
 *
 * All is well when nothing of the ordinary ones' failed, and no kind of their calls took more than 1.5 times as long.
 */
import { parseArgs } from "node:util";
import { runHostile } from "../hostile.ts";
import { number, summary } from "./tables.ts";

/** How many times as long an ordinary caller's call may take beside the hostile one, by its median. */
const MOST = 1.5;

export async function run(): Promise<number> {
  const { values } = parseArgs({ options: { hostile: { type: "boolean" }, seconds: number(60) } });
  const { alone, beside, failed, hostile } = await runHostile({ seconds: Number(values.seconds), say: console.log });
  const rows = Object.keys(alone).map((what) => {
    const [one, other] = [summary(alone[what]), summary(beside[what])];
    const both = { samples: `${one.samples ?? 0}, ${other.samples ?? 0}` };
    return [what, { ...both, alone: `${one.p50}, ${one.p99}`, beside: `${other.p50}, ${other.p99}` }];
  });
  console.log("Milliseconds: p50, p99");
  console.table(Object.fromEntries(rows));
  console.log("Answers to the hostile caller");
  console.table(hostile);
  for (const what of failed.slice(0, 10)) console.log(`Failed: ${what}`);
  const late = Object.keys(alone).filter((what) => {
    const [one, other] = [summary(alone[what]), summary(beside[what])];
    return Number(other.p50) > MOST * Number(one.p50);
  });
  for (const what of late) console.log(`Later than ${MOST} times: ${what}`);
  return failed.length + late.length === 0 ? 0 : 1;
}
