/** The tools that cards of jobs call for the user. Hosts that show cards hide these tools from models. */
import * as z from "zod";
import { JobStatus } from "../../core/jobs/index.ts";
import { exactJsonOf, isRecord } from "../../core/resonate/index.ts";
import {
  ANSWER_SUBJECT,
  builtInTool,
  type CallContext,
  check,
  giveAnswer,
  jsonText,
  nameText,
  refusal,
  type Tool,
  ToolError,
} from "../../core/tools/index.ts";

export const CARD_TOOLS = ["job_card", "answer_for_user"] as const;
const [JOB_CARD, ANSWER_FOR_USER] = CARD_TOOLS;

/** Hides a tool from models: in the terms of MCP Apps, and of hosts that preceded it. */
const _meta = { ui: { visibility: ["app"] }, "openai/visibility": "private", "openai/widgetAccessible": true };
const description = "For cards, not models.";

/**
 * Describes a job to its card, which knows the job's name or the call that started the job.
 *
 * @param chart the address of the program that draws charts
 */
export const jobCard = (tools: readonly Tool[], chart: string): Tool =>
  builtInTool({
    name: JOB_CARD,
    title: "Show a job in a card",
    description,
    input: z.object({
      job_name: nameText.optional(),
      tool: z.string().optional(),
      arguments: jsonText.optional(),
    }),
    // Only the card's own program reads further fields.
    output: z.looseObject({ job_name: z.string(), status: JobStatus }),
    annotations: { readOnlyHint: true, openWorldHint: false },
    _meta,
    async run({ job_name, tool, arguments: args = "{}" }, context) {
      const calledTool = tools.find(({ name }) => name === tool);
      const name = job_name ?? (calledTool && (await nameOf(calledTool, exactJsonOf(args), context))) ?? "";
      const promise = await context.store.get(name, context.signal);
      if (!promise) return { job_name: name, status: "not_found" as const };
      const { kind, view } = promise.job;
      const { title } = (calledTool ?? tools.find(({ job }) => job?.kind === kind))?.listing ?? {};
      const { cardOf } = await import("./card-of.ts");
      return { ...(await cardOf(promise, context)), title, view, chart, [ANSWER_SUBJECT]: { isCard: true } };
    },
  });

/** The name of the newest job that a call has started, if any. */
async function nameOf({ input, find }: Tool, args: unknown, context: CallContext) {
  if (!find || !isRecord(args)) return undefined;
  const checked = await check(input, args);
  if ("problems" in checked) return undefined;
  try {
    return (await find(checked.args, context))?.jobName;
  } catch (error) {
    // A call that would be refused has started nothing.
    if (error instanceof ToolError) return undefined;
    throw error;
  }
}

/** The user's own answer, given in a card. */
export const answerForUser = builtInTool({
  name: ANSWER_FOR_USER,
  title: "Give the user's answer",
  description,
  input: z.object({
    job_name: nameText,
    question: z.string(),
    answer: jsonText,
  }),
  output: z.object({ answered: z.literal(true) }),
  annotations: { destructiveHint: false, idempotentHint: true, openWorldHint: false },
  _meta,
  async run({ job_name, question, answer }, { store, signal, showsCards }) {
    // In other clients the model itself may call.
    if (!showsCards) {
      const why = "this client does not say that it shows cards, in which only its user answers.";
      throw new ToolError(refusal(ANSWER_FOR_USER, [why]));
    }
    await giveAnswer(ANSWER_FOR_USER, { job_name, question, answer, isUser: true }, store, signal);
    return { answered: true as const };
  },
});
