import * as z from "zod";
import { defineJob, HOUR } from "../../../core/index.ts";

const n = z.object({ n: z.number() });

export const titles = defineJob({ kind: "titles", args: n, id: ({ n }) => n, deadline: HOUR });
export const halves = defineJob({ kind: "halves", args: n, id: ({ n }) => n, deadline: HOUR });
export const pages = defineJob({
  kind: "pages",
  args: z.object({ what: z.string() }),
  result: z.object({ text: z.string() }),
  id: ({ what }) => what,
  deadline: HOUR,
  freshFor: 60_000,
});
