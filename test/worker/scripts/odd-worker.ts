/** The product's worker with jobs that misbehave, and some that report their surroundings. */
import { get } from "node:http";
import * as z from "zod";
import { type Context, defineJob, implement } from "../../../core/index.ts";
import { runWorker } from "../../../worker/worker.ts";

function job(kind: string, run: (ctx: Context, args: unknown) => Promise<unknown>, options = {}) {
  return implement(defineJob({ kind, args: z.unknown(), id: () => "x", ...options }), run);
}

const circular: Record<string, unknown> = {};
circular.self = circular;

let running = 0;

await runWorker({
  functions: [
    job("echo", async (_ctx, args) => args),
    job("returns_bigint", async () => 10n),
    job("returns_circular", async () => circular),
    job("step_returns_bigint", async (ctx) => ctx.step("ten", () => 10n)),
    job("reads_of_nothing", async (_ctx, args) => (args as { text: string }).text.length),
    job("throws_nothing", async () => {
      throw undefined;
    }),
    job("throws_circular", async () => {
      throw circular;
    }),
    job("leaves_a_rejection", async () => {
      void Promise.reject(new Error("nobody waits for this"));
      return "done";
    }),
    job("leaves_a_timer", async (ctx) =>
      ctx.step(
        "wait",
        () => {
          setTimeout(() => {
            throw new Error("thrown by a timer");
          }, 10);
          return new Promise(() => {});
        },
        { retry: false },
      ),
    ),
    job("listens_to_no_error", async (ctx) =>
      ctx.step("get", () => new Promise((resolve) => get("http://127.0.0.1:1", resolve)), { retry: false }),
    ),
    job("throws_when_over", async (ctx) => {
      await ctx.step("begin", () => {
        setTimeout(() => {
          throw new Error("thrown when it was over");
        }, 10);
      });
      return ctx.step("wait", () => new Promise((resolve) => setTimeout(() => resolve("done"), 200)));
    }),
    job("ends_the_process", async (ctx) => ctx.step("end", () => process.exit(3))),
    job("never_returns", async (ctx) => ctx.step("for ever", () => new Promise(() => {}))),
    job("waits_for_nothing", () => new Promise(() => {})),
    job("takes_turns", async () => "done", { concurrency: { key: () => "all", limit: 1 } }),
    /** Returns the number of jobs of its kind that run at that moment, itself included. */
    job("counts", async (ctx) =>
      ctx.step("count", async () => {
        running++;
        await new Promise((resolve) => setTimeout(resolve, 100));
        return running--;
      }),
    ),
  ],
});
