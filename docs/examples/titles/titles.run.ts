import { implement, MINUTE, NonRetryableError, parseRetryAfter, RetryableError, SECOND } from "../../../core/index.ts";
import { titles } from "./titles.ts";

export const titlesRun = implement(titles, async (ctx, { urls }) => {
  let done = 0;
  const found = await ctx.all(
    urls,
    async (ctx, url) => {
      const html = await ctx.step("fetch", ({ signal }) => get(url, signal), {
        timeout: MINUTE,
        retry: { maxDuration: 10 * MINUTE },
      });
      ctx.progress(++done, urls.length, `${done} of ${urls.length} pages`);
      return /<title>([^<]*)/i.exec(html)?.[1]?.trim() ?? url;
    },
    { concurrency: 5 },
  );
  return { titles: found };
});

async function get(url: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(url, { signal });
  if (response.status === 429) {
    const retryAfter = parseRetryAfter(response.headers.get("retry-after")) ?? 30 * SECOND;
    throw new RetryableError("asked to wait", { retryAfter });
  }
  if (response.status >= 500) throw new Error(`it answered ${response.status}`); // retried
  if (!response.ok) throw new NonRetryableError(`it answered ${response.status}`); // not retried
  return response.text();
}
