import { ProtocolFailure, type Question } from "../../functions/jobs/index.ts";
import type { RemoteStore } from "../../functions/resonate/store.ts";
import { Caller } from "../../worker/functions/caller.ts";
import { type DurableFunction, durable } from "../../worker/functions/durable.ts";
import { confirmDelete, failingJob, hello, multiInput, protocolErrorJob, slowCompute } from "./jobs.ts";

const askFor = (message: string, property: string, type: "boolean" | "string"): Question => ({
  message,
  requestedSchema: { type: "object", properties: { [property]: { type } }, required: [property] },
});

/** The durable functions of the fixture jobs. */
export function fixtureFunctions(store: RemoteStore): DurableFunction[] {
  return [
    durable(slowCompute, async (ctx, { seconds, label }) => {
      await ctx.sleep(seconds * 1_000);
      return `${label}: computed for ${seconds} s`;
    }),
    durable(failingJob, async (ctx) => {
      await ctx.sleep(1_000);
      throw new Error("it always fails");
    }),
    durable(protocolErrorJob, async () => {
      throw new ProtocolFailure("the server itself failed");
    }),
    durable(confirmDelete, async (ctx, { filename }) => {
      const answer = await new Caller(store, ctx).ask(askFor(`Delete ${filename}?`, "confirm", "boolean"));
      const confirmed = answer.action === "accept" && answer.content.confirm === true;
      return confirmed ? `deleted ${filename}` : `kept ${filename}`;
    }),
    durable(multiInput, async (ctx) => {
      const caller = new Caller(store, ctx);
      const name = caller.ask(askFor("What is your name?", "name", "string"));
      const sure = caller.ask(askFor("Are you sure?", "confirm", "boolean"));
      return { name: await name, sure: await sure };
    }),
    durable(hello, async (_ctx, { name }) => `Hello, ${name}!`),
  ];
}
