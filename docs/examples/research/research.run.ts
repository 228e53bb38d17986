import { implement } from "../../../core/index.ts";
import { call, Services } from "../services.ts";
import { research } from "./research.ts";

/** The most tokens of one answer. They are counted before the model is asked: the budget is never crossed. */
const EACH = 1_000;

/** A fan-out with a budget: what is found is told at once, and what fails takes nothing else with it. */
export const researchRun = implement(
  research,
  async (ctx, { topic }) => {
    const { questions } = await ctx.step("plan", (step) =>
      call<{ questions: string[] }>(step, "/model/questions", { topic }),
    );
    const ended = await ctx.allSettled(
      questions,
      async (ctx, question) => {
        await ctx.spend(EACH, { of: "tokens" });
        const { text } = await ctx.step("answer", (step) =>
          call<{ text: string }>(step, "/model/answers", { question, max_tokens: EACH }),
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
