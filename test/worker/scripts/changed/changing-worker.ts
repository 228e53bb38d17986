/** The product's worker with jobs whose code a test changes, breaks and mends. `CODE` selects the code: `first` or `changed`. */
import { appendFileSync, existsSync, writeFileSync } from "node:fs";
import { appendFile } from "node:fs/promises";
import { type Context, implement, NonRetryableError } from "../../../../core/index.ts";
import { runWorker } from "../../../../worker/worker.ts";
import {
  eggs,
  forecast,
  laterHalves,
  listener,
  order,
  pages,
  resumedTrip,
  strictForecast,
  titles,
  trip,
} from "./changing.ts";

const { CODE, FOLDER } = process.env;

/** A booking saga: each booking, and each step that undoes one, is a line of a file with its key and the trip's number. */
async function book(ctx: Context) {
  const number = ctx.uuid();
  const line = (what: string) => (step: { idempotencyKey: string }) =>
    appendFile(`${FOLDER}/bookings`, `${what} ${step.idempotencyKey} ${number}\n`).then(() => what);
  const booked: string[] = [];
  try {
    for (const what of ["flight", "hotel"]) booked.push(await ctx.step(`reserve ${what}`, line(what)));
    await ctx.step("reserve car", (step) => {
      if (existsSync(`${FOLDER}/no-car`)) throw new NonRetryableError("there is no car");
      return line("car")(step);
    });
    return { booked: [...booked, "car"] };
  } catch (error) {
    for (const what of booked.toReversed()) await ctx.step(`undo ${what}`, line(`-${what}`));
    throw error;
  } finally {
    await ctx.step("close", line("closed"));
  }
}

const both = async (ctx: Context, { n }: { n: number }) => {
  await ctx.step("first half", () => appendFile(`${FOLDER}/first ${n}`, "x"));
  await ctx.step("second half", () => {
    if (existsSync(`${FOLDER}/broken`)) throw new NonRetryableError("the second half is broken");
  });
  return "whole";
};

const tell = async (ctx: Context, { city }: { name: string; city: string }) => {
  const weather = await ctx.step("ask", async () => {
    await appendFile(`${FOLDER}/asked`, "x");
    return `sunny in ${city}`;
  });
  await ctx.step("send", () => {
    if (existsSync(`${FOLDER}/no-mail`)) throw new NonRetryableError("there is no mail");
  });
  return { city, weather };
};

await runWorker({
  functions: [
    implement(titles, async (ctx) => {
      const text = await ctx.step(CODE === "changed" ? "summary" : "title", () => "as it was");
      await ctx.until("go on", { every: 200 }, () => existsSync(`${FOLDER}/go-on`));
      return { text };
    }),
    implement(order, async (ctx, { n }) => {
      const number = ctx.uuid();
      await ctx.step("reserve", () => appendFile(`${FOLDER}/order ${n}`, `reserve ${number}\n`));
      await ctx.sleep("a moment", 10);
      await ctx.step("pay", () => {
        appendFileSync(`${FOLDER}/order ${n}`, `pay ${number}\n`);
        if (existsSync(`${FOLDER}/broken`)) throw new NonRetryableError("the card is refused");
      });
      return number;
    }),
    implement(laterHalves, both, { earlier: { 1: both } }),
    implement(eggs, async (ctx) => {
      const count = await ctx.step("count", () => (CODE === "changed" ? 12 : 11));
      if (count !== 12) throw new NonRetryableError(`${count} eggs`);
      return { count };
    }),
    implement(listener, async (ctx, { n }) => {
      ctx.signal.addEventListener("abort", () => appendFileSync(`${FOLDER}/heard ${n}`, "x"));
      await ctx.step("begin", () => 1);
      await ctx.sleep("a moment", 300);
      if (n === 2)
        await ctx.step(
          "wait",
          ({ signal }) =>
            new Promise((resolve) => {
              signal.onabort = () => resolve(null);
              writeFileSync(`${FOLDER}/waits`, "");
            }),
        );
      return "nothing was heard";
    }),
    implement(trip, book),
    implement(resumedTrip, book),
    implement(forecast, tell),
    implement(strictForecast, tell),
    implement(pages, async (ctx, { what }) => {
      if (what === "a response") return new Response("hello") as never;
      if (what === "another shape") return { text: 5 } as never;
      if (what === "a gap") return [undefined] as never;
      if (what === "too much") return { text: await ctx.step("read", () => "x".repeat(1_100_000)) };
      return { text: "a page" };
    }),
  ],
});
