/** The product's worker with one job, which tells its caller and asks it in every way there is. */
import type { Question } from "../../functions/jobs/index.ts";
import { RemoteStore } from "../../functions/resonate/store.ts";
import { Caller } from "../../worker/functions/caller.ts";
import { durable } from "../../worker/functions/durable.ts";
import { runWorker } from "../../worker/run.ts";
import { interview } from "./interview.ts";

const question = (message: string): Question => ({
  message,
  requestedSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
});

/** As a function does whose questions are asked by helpers of helpers. */
async function behindHelpers<T>(value: () => Promise<T>, depth = 3): Promise<T> {
  return depth === 0 ? await value() : await behindHelpers(value, depth - 1);
}

await runWorker((config) => {
  const store = new RemoteStore(config, [interview]);
  return [
    durable(interview, async (ctx) => {
      const caller = new Caller(store, ctx);
      await caller.tell("begun");
      const first = caller.ask(question("first?"));
      const second = caller.ask(question("second?"));
      const answers = [await behindHelpers(() => second)];
      await caller.tell("second answered");
      answers.push(await first);
      await caller.tell("both answered");
      answers.push(await behindHelpers(() => caller.ask(question("third?"))));
      return answers;
    }),
  ];
});
