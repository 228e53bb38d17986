/** The types of events that a deployment tells of, as `events/list` has them. */
import * as z from "zod";
import { JobView } from "../../core/jobs/status.ts";
import { JOB_ENDED } from "../caller/occurrence.ts";

/** How many names and kinds one subscription may be narrowed to. */
const MOST = 100;

/** What narrows a subscription. */
export const Narrowing = z.strictObject({
  job_names: z.array(z.string().max(600)).min(1).max(MOST).optional().describe("Of these jobs alone."),
  kinds: z.array(z.string().max(64)).min(1).max(MOST).optional().describe("Of jobs of these kinds alone."),
});
export type Narrowing = z.infer<typeof Narrowing>;

const Ended = JobView.omit({ doing: true, newer: true, waiting_for: true }).extend({
  kind: z.string(),
  view_url: z.string().optional().describe("Its page."),
});

export interface EventType {
  name: string;
  description: string;
  delivery: readonly ("poll" | "push" | "webhook")[];
  inputSchema: object;
  payloadSchema: object;
}

const schemaOf = (schema: z.ZodType, io: "input" | "output"): object => {
  const { $schema: _, ...plain } = z.toJSONSchema(schema, { io });
  return plain;
};

export function eventTypes(): EventType[] {
  return [
    {
      name: JOB_ENDED,
      description: "A job that the caller started has ended: with its result, or why there is none.",
      delivery: ["poll", "push"],
      inputSchema: schemaOf(Narrowing, "input"),
      payloadSchema: schemaOf(Ended, "output"),
    },
  ];
}
