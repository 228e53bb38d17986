import * as z from "zod";
import { DAY, implement, NonRetryableError } from "../../../core/index.ts";
import { call, Services } from "../services.ts";
import { purchase } from "./purchase.ts";

const Approval = z.object({ approved: z.boolean() });

/** An approval, with a reminder after a day. After three days the director may decide in place of the user. */
export const purchaseRun = implement(
  purchase,
  async (ctx, { item, euros }) => {
    const question = `Buy ${item} for ${euros} euros?`;
    const { winner, value } = await ctx.race({
      user: async (ctx) => {
        const answer = await ctx.ask("approve", { message: question, schema: Approval });
        return answer.action === "accept" && answer.content.approved;
      },
      director: async (ctx) => {
        await ctx.sleep("a day", DAY);
        await ctx.step("remind", (step) => call(step, "/mails", { to: "user", text: `Not answered yet: ${question}` }));
        await ctx.sleep("two more days", 2 * DAY);
        const decision = ctx.callback("decision", { schema: Approval, for: 7 * DAY });
        await ctx.step("escalate", (step) =>
          call(step, "/mails", { to: "director", text: question, decide: decision.url }),
        );
        return (await decision.result).approved;
      },
    });
    if (!value) throw new NonRetryableError(`the ${winner} did not approve of ${item}`);
    const { number } = await ctx.step("order", (step) => call<{ number: string }>(step, "/orders", { item, euros }));
    return { approved_by: winner, order: number };
  },
  { env: Services },
);
