import * as z from "zod";
import { implement, NonRetryableError } from "../../../core/index.ts";
import { release } from "./release.ts";

export const releaseRun = implement(release, async (ctx, { version }) => {
  ctx.progress(`waiting for ${version} to be approved`);
  const answer = await ctx.ask("approve", {
    message: `Release ${version}?`,
    schema: z.object({ approved: z.boolean(), reason: z.string().optional() }),
  });
  // The content fits the schema. The user may also decline, or close the form.
  if (answer.action !== "accept" || !answer.content.approved) {
    throw new NonRetryableError(`${version} was not approved`);
  }
  ctx.progress("releasing");
  return ctx.step("release", () => ({ version, released_at: new Date().toISOString() }));
});
