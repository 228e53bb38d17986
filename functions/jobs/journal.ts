/**
 * How a running durable function tells its caller how far it is, and asks it questions.
 *
 * A function that does so keeps a journal beside its promise: children `<promise>:u1`, `<promise>:u2`, …, each
 * resolved once with everything there is to know at that point, so that only the newest matters. The next entry may
 * exist before it is written, unresolved: whoever wants to be told of it listens to it.
 *
 * A question is a promise of its own, which the function sleeps on until the caller answers.
 */
import * as z from "zod";

/** The id of a journal's `n`th entry, counted from 1. */
export const entryId = (promiseId: string, n: number): string => `${promiseId}:u${n}`;

/** A form the caller is asked to fill in, as the protocol's `elicitation/create` has it. */
export const Question = z.object({
  /** What is asked, for the person who answers. */
  message: z.string(),
  /** JSON Schema of the answer: an object of primitive properties. */
  requestedSchema: z.looseObject({ type: z.literal("object"), properties: z.record(z.string(), z.unknown()) }),
});
export type Question = z.infer<typeof Question>;

/** What the caller did: filled in the form, refused to, or closed it. */
export const Answer = z.discriminatedUnion("action", [
  z.object({ action: z.literal("accept"), content: z.record(z.string(), z.unknown()) }),
  z.object({ action: z.literal("decline") }),
  z.object({ action: z.literal("cancel") }),
]);
export type Answer = z.infer<typeof Answer>;

export const Entry = z.object({
  /** How far the job is, for people. */
  message: z.string().optional(),
  /** What was asked and not known to be answered, by a key that names no other question of this job. */
  questions: z.record(z.string(), z.object({ promiseId: z.string(), question: Question })),
});
export type Entry = z.infer<typeof Entry>;

/**
 * Thrown by a durable function for a failure of the server rather than of the work: a task then fails as a protocol
 * error, not as a tool's.
 */
export class ProtocolFailure extends Error {
  override name = "ProtocolFailure";
}
