import { implement, NonRetryableError } from "../../../core/index.ts";
import { call, Services } from "../services.ts";
import { crawl } from "./crawl.ts";

/** A crawler: a round for each distance from the first page, a step for each page, eight pages at once. */
export const crawlRun = implement(
  crawl,
  async (ctx, { start, pages }) => {
    const seen = new Set([start]);
    const broken: string[] = [];
    for (let round = [start]; round.length > 0;) {
      const found = await ctx.all(
        round,
        async (ctx, path) => {
          const page = await ctx
            // On all workers together, at most eight requests to the site run at once.
            .step("fetch", (step) => call<{ links: string[] }>(step, path), { concurrency: { name: "site", limit: 8 } })
            .catch((error) => {
              // A missing page is reported. Any other error was retried for ten minutes, and fails the job.
              if (!(error instanceof NonRetryableError)) throw error;
              broken.push(path);
            });
          return page?.links ?? [];
        },
        { concurrency: 20 },
      );
      const links = new Set(found.flat().filter((path) => !seen.has(path)));
      round = [...links].slice(0, pages - seen.size);
      for (const path of round) seen.add(path);
      ctx.progress(seen.size, pages, `${seen.size} pages found`);
    }
    return { pages: seen.size, broken: broken.sort() };
  },
  { env: Services },
);
