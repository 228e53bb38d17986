/**
 * The tools of the cards that hosts show of jobs: a card has no model's eyes, so it is told what a program needs, and it is
 * the user who acts in it. Hosts that show cards keep these tools from models.
 */
import * as z from "zod";
import { doingOf, jobSnapshotOf } from "../../core/jobs/snapshot.ts";
import { newerGeneration } from "../../core/jobs/start.ts";
import { JobStatus, viewOf } from "../../core/jobs/status.ts";
import type { DurablePromise } from "../../core/resonate/remote-store.ts";
import { check, jobName } from "../../core/tools/arguments.ts";
import { type CallContext, defineTool, refusal, type Tool, ToolError } from "../../core/tools/tool.ts";
import { checkAnswer } from "../tasks/answer.ts";

/** For cards alone. */
const _meta = { ui: { visibility: ["app"] } };

/** Their names. */
export const CARD_TOOLS = ["job_card", "answer_for_user"] as const;
const [JOB_CARD, ANSWER_FOR_USER] = CARD_TOOLS;

/** The most of a job's arguments that a card is told, in characters of JSON. */
const MAX_ARGUMENTS = 4_000;

/** What the card's own program reads; no model does, so that more need not be said. */
const CardView = z.looseObject({ job_name: z.string(), status: JobStatus });

/** What a card shows of a job, which it knows by its name, or by the call that has started it. */
export const jobCard = (tools: readonly Tool[]): Tool =>
  defineTool({
    name: JOB_CARD,
    title: "Show a job in a card",
    description: "For the cards that hosts show of jobs, and for nothing else: models call probe_status.",
    input: z.object({
      job_name: jobName.optional().describe("The job; or else:"),
      tool: z.string().optional().describe("The tool that was called."),
      arguments: z.record(z.string(), z.unknown()).optional().describe("With what."),
    }),
    output: CardView,
    annotations: { readOnlyHint: true, openWorldHint: false },
    _meta,
    async run({ job_name, tool, arguments: args = {} }, context) {
      const name = job_name ?? (await nameOf(tools, tool, args, context));
      const promise = name === undefined ? undefined : await context.store.get(name, context.signal);
      return promise ? cardOf(promise, context) : { job_name: name ?? "", status: "not_found" as const };
    },
  });

/** The name of the newest job that a call has started; undefined when there is none. */
async function nameOf(
  tools: readonly Tool[],
  tool: string | undefined,
  args: Record<string, unknown>,
  context: CallContext,
): Promise<string | undefined> {
  const called = tools.find(({ name }) => name === tool);
  const checked = called?.find && (await check(called.input, args));
  if (!checked || "problems" in checked) return undefined;
  // What could not be started now is not there to be shown.
  const found = await called?.find?.(checked.args, context).catch((error) => {
    if (!(error instanceof ToolError)) throw error;
  });
  return found?.job_name;
}

async function cardOf(promise: DurablePromise, { store, signal }: CallContext): Promise<z.infer<typeof CardView>> {
  const { name, args } = promise;
  const { result: _result, ...view } = viewOf(name, promise);
  const shown = (JSON.stringify(args) ?? "").length <= MAX_ARGUMENTS ? { ...view, arguments: args } : view;
  if (promise.state !== "pending") {
    const newer = await newerGeneration(store, promise, signal);
    return { ...shown, ...(newer && { newer: newer.name }) };
  }
  const snapshot = await jobSnapshotOf(store, promise, signal, "recent");
  const { progress, step } = snapshot.journal.entry ?? {};
  const questions = [...snapshot.questions].map(
    ([
      question,
      {
        question: { message, requestedSchema },
      },
    ]) => {
      return { question, message, schema: requestedSchema };
    },
  );
  return { ...shown, doing: doingOf(snapshot, Date.now()), progress, step, questions };
}

/** The user's own answer, given in a card. */
export const answerForUser = defineTool({
  name: ANSWER_FOR_USER,
  title: "Give the user's answer",
  description: "For the cards that hosts show of jobs, in which the user answers, and for nothing else.",
  input: z.object({
    job_name: jobName,
    question: z.string().describe("Its key."),
    content: z.record(z.string(), z.unknown()).nullable().describe("What was filled in; null when it was declined."),
  }),
  output: z.object({ answered: z.literal(true) }),
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  _meta,
  async run({ job_name, question, content }, { store, signal, showsCards }) {
    const refused = (reason: string) => new ToolError(refusal(ANSWER_FOR_USER, [reason]));
    // Of any other client it may be the model that calls.
    if (!showsCards) throw refused("this client does not say that it shows cards, in which only its user answers.");
    const promise = await store.get(job_name, signal);
    const open = promise && (await jobSnapshotOf(store, promise, signal)).questions.get(question);
    if (!open) throw refused(`${job_name} does not ask that now.`);
    const fitted = checkAnswer(open.question, content === null ? { action: "decline" } : { action: "accept", content });
    if ("reason" in fitted) throw refused(`content: ${fitted.reason}.`);
    await store.journals.answer(open.promiseId, fitted.answer);
    return { answered: true as const };
  },
});
