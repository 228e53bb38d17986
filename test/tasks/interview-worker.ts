/** The product's worker with one job, which tells its caller and asks it in every way there is. */
import { implement, type Question } from "../../core/index.ts";
import { runWorker } from "../../worker/process/run-worker.ts";
import { interview } from "./interview.ts";

const question = (message: string): Question => ({
  message,
  requestedSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
});

/** As a function does whose questions are asked by helpers of helpers. */
async function behindHelpers<T>(value: () => Promise<T>, depth = 3): Promise<T> {
  return depth === 0 ? await value() : await behindHelpers(value, depth - 1);
}

await runWorker({
  functions: [
    implement(interview, async (ctx) => {
      ctx.progress("begun");
      const first = ctx.ask("q1", question("first?"));
      const second = ctx.ask("q2", question("second?"));
      const answers = [await behindHelpers(() => second)];
      ctx.progress("second answered");
      answers.push(await first);
      ctx.progress("both answered");
      answers.push(await behindHelpers(() => ctx.ask("q3", question("third?"))));
      return answers;
    }),
  ],
});
