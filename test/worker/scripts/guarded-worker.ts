/** The product's worker with functions written as if they ran only once; with `isNatural: false` they are made for replays. */
import { randomUUID } from "node:crypto";
import { implement } from "../../../core/index.ts";
import { runWorker } from "../../../worker/worker.ts";
import { collecting, counting, forgetful, lasting, order, request, telling } from "./guarded.ts";

/** Stands for a library that the function calls. */
const orderNumber = () => randomUUID();

await runWorker({
  functions: [
    implement(order, async (ctx, { isNatural, pause }) => {
      const id = isNatural ? orderNumber() : ctx.uuid();
      const create = await ctx.step("create", () => `/create?order=${id}`);
      await ctx.sleep("a while", pause);
      const pay = await ctx.step("pay", () => `/pay?order=${id}`);
      return { sent: [create, pay], random: ctx.random() };
    }),
    implement(collecting, async (ctx, { isNatural, pause }) => {
      const failed: number[] = [];
      let sent = 0;
      for (const i of [1, 2, 3]) {
        const error = await ctx.step("send", () => {
          if (isNatural && i === 3) failed.push(i);
          return i === 3;
        });
        if (!isNatural && error) failed.push(i);
        sent += 1;
        await ctx.sleep("pause", pause);
      }
      return { failed, sent };
    }),
    implement(counting, async (ctx) => {
      let looks = 0;
      return ctx.until("third look", { every: 500 }, () => ++looks === 3);
    }),
    implement(lasting, async (ctx, { isNatural }) => {
      const time = () => (isNatural ? Date.now() : ctx.now());
      const begun = time();
      let steps = 0;
      while (time() < begun + 1_500) {
        steps += await ctx.step("work", () => 1);
        await ctx.sleep("a while", 700);
      }
      return { steps };
    }),
    implement(request, async (ctx, { url }) => {
      void fetch(url);
      await ctx.sleep("a while", 100);
      return {};
    }),
    implement(telling, async (ctx, { pause }) => {
      for (const n of [1, 2]) {
        await ctx.emit({ n, id: ctx.uuid() });
        await ctx.sleep("a while", pause);
      }
      return {};
    }),
    implement(forgetful, async (ctx) => {
      ["a", "b"].forEach(async (name) => {
        await ctx.step(name, () => Promise.reject(new TypeError(`${name} is gone`)));
      });
      return { done: true };
    }),
  ],
});
