import * as z from "zod";
import { implement } from "../../../core/index.ts";
import { fetchOnce } from "./fetch.ts";

const env = z.object({ ARCHIVE_URL: z.url() });

export const fetchOnceRun = implement(
  fetchOnce,
  (ctx, { name }) =>
    ctx.step("fetch", async ({ signal }) => {
      const response = await fetch(`${ctx.env.ARCHIVE_URL}?name=${encodeURIComponent(name)}`, { signal });
      if (!response.ok) throw new Error(`the archive answered ${response.status}`);
      return (await response.json()) as Record<string, unknown>;
    }),
  { env },
);
