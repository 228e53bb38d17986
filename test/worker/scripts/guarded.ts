import * as z from "zod";
import { defineJob, HOUR } from "../../../core/index.ts";

const args = z.object({ name: z.string(), isNatural: z.boolean(), pause: z.number() });

export const [order, lasting, forgetful, telling, collecting, counting] = [
  "order",
  "lasting",
  "forgetful",
  "telling",
  "collecting",
  "counting",
].map((kind) => defineJob({ kind, args, id: ({ name }) => name, deadline: HOUR })) as [
  Named,
  Named,
  Named,
  Named,
  Named,
  Named,
];

type Named = ReturnType<typeof defineJob<z.infer<typeof args>, unknown>>;

export const request = defineJob({
  kind: "request",
  args: z.object({ name: z.string(), url: z.string() }),
  id: ({ name }) => name,
  deadline: HOUR,
});
