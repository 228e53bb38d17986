import { implement, ProtocolFailure, type Question, type Step } from "../../core/index.ts";
import { confirmDelete, failingJob, hello, multiInput, openQuestion, protocolErrorJob, slowCompute } from "./jobs.ts";

const askFor = (message: string, property: string, type: "boolean" | "string"): Question => ({
  message,
  requestedSchema: { type: "object", properties: { [property]: { type } }, required: [property] },
});

const triedTwice = ({ attempt }: Step) => {
  if (attempt === 1) throw new Error("not yet");
};

/** The durable functions of the fixture jobs. */
export const fixtureFunctions = [
  implement(slowCompute, async (ctx, { seconds, label }) => {
    await ctx.sleep("compute", seconds * 1_000);
    return `${label}: computed for ${seconds} s`;
  }),
  implement(failingJob, async (ctx) => {
    await ctx.sleep("first", 1_000);
    throw new Error("it always fails");
  }),
  implement(protocolErrorJob, async () => {
    throw new ProtocolFailure("the server itself failed");
  }),
  implement(confirmDelete, async (ctx, { filename }) => {
    const answer = await ctx.ask("confirm", askFor(`Delete ${filename}?`, "confirm", "boolean"));
    const confirmed = answer.action === "accept" && answer.content.confirm === true;
    return confirmed ? `deleted ${filename}` : `kept ${filename}`;
  }),
  implement(multiInput, async (ctx) => {
    const name = ctx.ask("name", askFor("What is your name?", "name", "string"));
    const sure = ctx.ask("sure", askFor("Are you sure?", "confirm", "boolean"));
    await ctx.emit({ name: await name });
    return { name: await name, sure: await sure };
  }),
  implement(openQuestion, async (ctx, { name }) => {
    if (name.startsWith("formless")) {
      const requestedSchema = { type: "object" as const, properties: {} };
      return await ctx.ask("colour", { message: "Is any colour right?", requestedSchema, answeredBy: "anyone" });
    }
    try {
      const answer = await ctx.ask("colour", { ...askFor("Which colour?", "colour", "string"), answeredBy: "anyone" });
      return answer.action === "accept" ? answer.content.colour : answer.action;
    } catch (error) {
      if (name === "tidied") await ctx.cleanup((ctx) => ctx.step("tidy up", triedTwice));
      throw error;
    }
  }),
  implement(hello, async (_ctx, { name }) => `Hello, ${name}!`),
];
