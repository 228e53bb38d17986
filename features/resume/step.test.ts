/** What a new attempt at a job does not repeat. */
import { expect, test } from "vitest";
import { type Context, NonRetryableError } from "../../core/author/context.ts";
import { SimulatedJob } from "../../testing/simulation/simulated-job.ts";
import { stepFeatures } from "../../testing/simulation/step-features.ts";

test("steps that an earlier attempt at the job has finished are not repeated", async () => {
  const done: string[] = [];
  const fn = (isMended: boolean) => async (ctx: Context) => {
    const page = await ctx.step("page", () => {
      done.push("page");
      return { text: "the page" };
    });
    page.text += "!";
    await ctx.step("break", () => {
      done.push("break");
      if (!isMended) throw new NonRetryableError("broken");
    });
    return page;
  };
  const first = new SimulatedJob(fn(false));
  expect(await first.toEnd()).toMatchObject({ kind: "failed" });
  const finishedSteps = new Map(first.journal.events.map((recorded) => [recorded.event.op, recorded]));
  const second = new SimulatedJob(fn(true), { steps: stepFeatures({ finishedSteps }) });
  expect(await second.toEnd()).toEqual({ kind: "complete", value: { text: "the page!" } });
  expect(done).toEqual(["page", "break", "break"]);
});
