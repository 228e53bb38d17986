import { implement } from "../../../core/index.ts";
import { call, Services } from "../services.ts";
import { research } from "./research.ts";

/** The most tokens of one answer. They are spent before the model is asked, so that the budget is never crossed. */
const MAX_ANSWER_TOKENS = 1_000;

/** A fan-out with a budget: each answer is emitted at once, and a question that fails does not affect the others. */
export const researchRun = implement(
  research,
  async (ctx, { topic }) => {
    const { questions } = await ctx.step("plan", (step) =>
      call<{ questions: string[] }>(step, "/model/questions", { topic }),
    );
    const ended = await ctx.allSettled(
      questions,
      async (ctx, question) => {
        await ctx.spend(MAX_ANSWER_TOKENS, { of: "tokens" });
        const { text } = await ctx.step("answer", (step) =>
          call<{ text: string }>(step, "/model/answers", { question, max_tokens: MAX_ANSWER_TOKENS }),
        );
        await ctx.emit({ question, text });
        return { question, text };
      },
      { concurrency: 4 },
    );
    return {
      answers: ended.flatMap((end) => (end.status === "fulfilled" ? [end.value] : [])),
      not_answered: ended.flatMap((end, i) =>
        end.status === "rejected" ? [{ question: questions[i] ?? "", reason: String(end.reason.message) }] : [],
      ),
    };
  },
  { env: Services },
);
