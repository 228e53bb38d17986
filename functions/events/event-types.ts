/** The types of events that a deployment tells of, as `events/list` has them. */
import * as z from "zod";
import type { EventDefinition } from "../../core/definitions/event.ts";
import type { Job } from "../../core/definitions/job.ts";
import { JobView } from "../../core/jobs/status.ts";
import { JOB_ENDED, JOB_OUTPUT, JOB_PROGRESS, JOB_QUESTION } from "../caller/schedules/occurrence.ts";

/** How many names and kinds one subscription may be narrowed to. */
const MOST = 100;

/** What narrows a subscription. */
export const Narrowing = z.strictObject({
  job_names: z.array(z.string().max(600)).min(1).max(MOST).optional().describe("Of these jobs alone."),
  kinds: z.array(z.string().max(64)).min(1).max(MOST).optional().describe("Of jobs of these kinds alone."),
  labels: z.array(z.string().max(64)).min(1).max(MOST).optional().describe("Of jobs with one of these labels alone."),
  schedule: z.string().max(600).optional().describe("Of the jobs that this schedule starts, by its job name."),
});
export type Narrowing = z.infer<typeof Narrowing>;

const ofAJob = {
  job_name: z.string(),
  kind: z.string(),
  labels: z.array(z.string()).optional().describe("Those that the caller gave it."),
  view_url: z.string().optional().describe("Its page."),
};

const Question = z.object({
  ...ofAJob,
  question: z.string().describe("Its key."),
  message: z.string().optional(),
  answered_by: z.enum(["user", "anyone"]).optional().describe("anyone: answer_question takes the answer."),
  answer_schema: z.record(z.string(), z.unknown()).optional().describe("JSON Schema of the answer."),
});

const Progress = z.object({
  ...ofAJob,
  message: z.string().optional(),
  done: z.number().optional(),
  total: z.number().optional(),
});

const Output = z.object({
  ...ofAJob,
  offset: z.int(),
  output: z.unknown(),
  summary: z.object({ characters: z.int(), part: z.string() }).optional(),
});

const Ended = JobView.omit({ doing: true, newer: true, waiting_for: true }).extend(ofAJob);

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

/** The events that these jobs tell, one of each name. */
const ownEvents = (jobs: readonly Job[]): EventDefinition[] => [
  ...new Map(jobs.flatMap(({ events = [] }) => events.map((event) => [event.name, event]))).values(),
];

/** `hooks`: whether they are delivered by web hook as well. */
export function eventTypes(hooks: boolean, jobs: readonly Job[]): EventType[] {
  const delivery: EventType["delivery"] = hooks ? ["poll", "push", "webhook"] : ["poll", "push"];
  const inputSchema = schemaOf(Narrowing, "input");
  const type = (name: string, description: string, payload: z.ZodType): EventType => ({
    ...{ name, description, delivery, inputSchema, payloadSchema: schemaOf(payload, "output") },
  });
  return [
    type(JOB_ENDED, "A job that the caller started has ended: with its result, or why there is none.", Ended),
    type(JOB_QUESTION, "A job that the caller started waits for an answer.", Question),
    type(JOB_PROGRESS, "How far a job is that the caller started; at most one in 5 seconds a job.", Progress),
    type(JOB_OUTPUT, "A partial result of a job that the caller started.", Output),
    ...ownEvents(jobs).map(({ name, payload }) =>
      type(name, payload.description ?? "", z.object({ ...ofAJob, payload })),
    ),
  ];
}
