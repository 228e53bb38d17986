/**
 * The progress feed of a job: its progress, its steps, its waits and its questions.
 *
 * It is a sequence of promises, children of the job's promise. Each entry holds the whole state at its time, so only the newest
 * matters. The next entry may exist, unresolved, before it is written: a client that waits for it has created it.
 */
import * as z from "zod";

/** A form for a person to fill in, in the shape of the protocol's `elicitation/create`. */
export const QuestionEntry = z.object({
  /** For the person who answers. */
  message: z.string(),
  /** JSON Schema of the answer: an object of primitive properties. */
  requestedSchema: z.looseObject({ type: z.literal("object"), properties: z.record(z.string(), z.unknown()) }),
  answeredBy: z.enum(["user", "anyone"]).optional(),
  keepsIntegers: z.literal(true).optional(),
});
export type QuestionEntry = z.infer<typeof QuestionEntry>;

/** What the person did: filled in the form, declined, or closed it. */
export const AnswerEntry = z.discriminatedUnion("action", [
  // The protocol lets a client leave out the content. Some serialize that as null.
  z.object({
    action: z.literal("accept"),
    content: z
      .record(z.string(), z.unknown())
      .nullish()
      .transform((content) => content ?? {}),
  }),
  z.object({ action: z.literal("decline") }),
  z.object({ action: z.literal("cancel") }),
]);
export type AnswerEntry = z.infer<typeof AnswerEntry>;

/** Times are milliseconds since the epoch. */
export const FeedEntry = z.object({
  /** How far the job is, for people, in its own words. */
  message: z.string().optional(),
  /** Questions that are not known to be answered, by a key that is unique in the job. */
  questions: z.record(z.string(), z.object({ promiseId: z.string(), question: QuestionEntry })),
  progress: z.object({ done: z.number(), total: z.number().optional() }).optional(),
  /** A step that runs, or waits for its next attempt. */
  step: z
    .object({ name: z.string(), attempt: z.number(), error: z.string().optional(), next: z.number().optional() })
    .optional(),
  /** How many more steps run beside it. */
  more: z.number().optional(),
  sleeping_until: z.number().optional(),
  /** How many other jobs it waits for. */
  awaiting: z.number().optional(),
  callbacks: z.array(z.string()).optional(),
  spent: z.record(z.string(), z.object({ spent: z.number(), limit: z.number() })).optional(),
  /** How many partial results it has emitted. */
  emitted: z.number().optional(),
  /** How many events it has emitted. */
  events: z.number().optional(),
  /** The number of the job's current run, from the second on. */
  run: z.number().optional(),
  /** Why no worker can continue the job at present. */
  blocked: z.string().optional(),
  /** Set if the code fits, but each worker that ran the job was lost. */
  blocked_by: z.literal("lost_workers").optional(),
});
export type FeedEntry = z.infer<typeof FeedEntry>;

/** What the job is doing, in one line for people; undefined if it reports nothing. */
export function activityIn(entry: FeedEntry | undefined, now: number): string | undefined {
  if (!entry) return undefined;
  const { message, progress, step, sleeping_until, blocked, awaiting, emitted, callbacks, spent = {} } = entry;
  const parts: string[] = [];
  if (entry.run !== undefined) parts.push(`run ${entry.run}`);
  if (blocked !== undefined) parts.push(`blocked: ${blocked}`);
  if (message !== undefined) parts.push(message);
  else if (progress)
    parts.push(progress.total === undefined ? `${progress.done} done` : `${progress.done} of ${progress.total}`);
  if (step?.error !== undefined) {
    const next = step.next === undefined ? "" : `, next in ${inWords(step.next - now)}`;
    parts.push(
      `${step.name}: attempt ${step.next === undefined ? step.attempt : step.attempt - 1}, ${step.error}${next}`,
    );
  } else if (step && message === undefined) parts.push(`${step.name} runs`);
  if (!step && sleeping_until !== undefined && sleeping_until > now) {
    parts.push(`sleeping until ${new Date(sleeping_until).toISOString()}`);
  }
  if (!step && awaiting && message === undefined)
    parts.push(`waiting for ${awaiting === 1 ? "a job" : `${awaiting} jobs`}`);
  if (!step && callbacks && message === undefined) parts.push(`waiting for ${callbacks.join(", ")} to be called back`);
  if (emitted) parts.push(emitted === 1 ? "a partial result" : `${emitted} partial results`);
  for (const [of, each] of Object.entries(spent)) parts.push(`${each.spent} of ${each.limit} ${of} spent`);
  for (const { question } of Object.values(entry.questions)) parts.push(`waiting for an answer: ${question.message}`);
  return parts.length > 0 ? parts.join("; ") : undefined;
}

function inWords(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1_000));
  return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}
