import { implement, SECOND } from "durable-mcp-edge";
import { waitForSite } from "./wait-for-site.ts";

export const waitForSiteRun = implement(waitForSite, async (ctx, { url }) => {
  const status = await ctx.until("up", { every: 30 * SECOND }, async ({ signal }) => {
    const response = await fetch(url, { signal });
    return response.ok && response.status; // a truthy value ends the wait
  });
  return { url, status };
});
