import { implement, MINUTE } from "../../../core/index.ts";
import { call, Services } from "../services.ts";
import { imported } from "./import.ts";

/** How many contacts go into one request. */
const AT_ONCE = 100;

/** An import in parts: one job per customer at a time, and 60 requests a minute for all customers together. */
export const importRun = implement(
  imported,
  async (ctx, { customer, contacts }) => {
    let added = 0;
    for (let from = 0; from < contacts.length; from += AT_ONCE) {
      const part = contacts.slice(from, from + AT_ONCE);
      const answer = await ctx.step(
        "add",
        (step) => call<{ added: number }>(step, `/customers/${encodeURIComponent(customer)}/contacts`, { part }),
        { rate: { name: "address books", limit: 60, per: MINUTE } },
      );
      added += answer.added;
      ctx.progress(from + part.length, contacts.length);
    }
    return { added };
  },
  { env: Services },
);
