/** The product's worker with jobs that undo their work when they are cancelled. */
import { existsSync } from "node:fs";
import { appendFile } from "node:fs/promises";
import { setTimeout as after } from "node:timers/promises";
import {
  type Context,
  DeadlineExceeded,
  HOUR,
  implement,
  JobCancelled,
  NonRetryableError,
  type Step,
} from "../../../core/index.ts";
import { runWorker } from "../../../worker/worker.ts";
import { booking, brief, hasty, resumed } from "./cancelled.ts";

const { FOLDER } = process.env;
const requestedSchema = { type: "object" as const, properties: {} };

async function book(ctx: Context, { n, how }: { n: string; how?: string | undefined }) {
  const write = (what: string) => appendFile(`${FOLDER}/${n}`, `${what}\n`);
  /** Stands for a request to an upstream, which recognizes a repeated one by its idempotency key. */
  const request = (what: string, { idempotencyKey }: Step) =>
    appendFile(`${FOLDER}/${n} keys`, `${what} ${idempotencyKey}\n`);
  await ctx.step("reserve", (step) => request("flight", step).then(() => write("flight")));
  let paid: string[] = [];
  try {
    if (await ctx.step("look", () => existsSync(`${FOLDER}/quick`))) return "booked";
    if (how === "later") await ctx.sleep("a moment", 200);
    if (how === "all") await ctx.all([1, 2], (c, i) => c.sleep(`${i}`, HOUR));
    else if (how === "step" || how === "later")
      await ctx.step("pay", () => write("paying").then(() => after(3_600_000)));
    else if (how === "ends") {
      paid = await ctx.step("pay", async () => {
        await write("paying");
        while (!existsSync(`${FOLDER}/${n} paid`)) await after(20);
        return ["7 euros"];
      });
      await ctx.sleep("an hour", HOUR);
    } else if (how === "heeds")
      await ctx.step("pay", async ({ signal }) => {
        await write("paying");
        await after(3_600_000, undefined, { signal }).catch(() => write("stopped"));
      });
    else if (how === "wait") await ctx.ask("go on", { message: "Go on?", requestedSchema });
    else await ctx.sleep("an hour", HOUR);
    return "booked";
  } catch (error) {
    if (!(error instanceof JobCancelled || error instanceof DeadlineExceeded)) throw error;
    await ctx.cleanup(async (ctx) => {
      await ctx.step("reserve", async (step) => {
        await request("-flight", step);
        // The first attempt fails, but not with `once`: a pause between attempts must not use up the short time of that clean-up.
        if (step.attempt === 1 && how !== "once") throw new Error("try again");
        return write(`-flight ${[...paid, ...error.unfinished]}`.trim());
      });
      await ctx.step("tell", async () => {
        await write("telling");
        if (how === "broken") throw new NonRetryableError("the mail is down");
        while (existsSync(`${FOLDER}/hold`)) await after(20);
      });
    });
    throw error;
  } finally {
    const close = (ctx: Context) => ctx.step("close", (step) => request("closed", step).then(() => write("closed")));
    if (how !== "broken") await ctx.cleanup(close, { name: "end" });
  }
}

await runWorker({ functions: [booking, resumed, hasty, brief].map((job) => implement(job, book)) });
