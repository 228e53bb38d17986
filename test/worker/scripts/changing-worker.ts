/** The product's worker with jobs whose code a test changes, breaks and mends: `CODE` says which it is. */
import { existsSync } from "node:fs";
import { appendFile } from "node:fs/promises";
import { implement, NonRetryableError } from "../../../core/index.ts";
import { runWorker } from "../../../worker/process/run-worker.ts";
import { halves, pages, titles } from "./changing.ts";

const { CODE, FOLDER } = process.env;

await runWorker({
  functions: [
    implement(titles, async (ctx) => {
      const text = await ctx.step(CODE === "changed" ? "summary" : "title", () => "as it was");
      await ctx.until("go on", { every: 200 }, () => existsSync(`${FOLDER}/go-on`));
      return { text };
    }),
    implement(halves, async (ctx) => {
      await ctx.step("first half", () => appendFile(`${FOLDER}/first`, "x"));
      await ctx.step("second half", () => {
        if (existsSync(`${FOLDER}/broken`)) throw new NonRetryableError("the second half is broken");
      });
      return "whole";
    }),
    implement(pages, async (ctx, { what }) => {
      if (what === "a response") return new Response("hello") as never;
      if (what === "another shape") return { text: 5 } as never;
      if (what === "too much") return { text: await ctx.step("read", () => "x".repeat(1_100_000)) };
      return { text: "a page" };
    }),
  ],
});
