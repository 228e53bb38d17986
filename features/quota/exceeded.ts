/** The refusals of starts beyond a caller's limits, with what to do about them. */
import { NotStarted } from "../../core/author/index.ts";
import { type CallerLimits, lengthOf, type ReserveAnswer } from "../../core/jobs/index.ts";

interface RefusedStart {
  /** How long the job is expected to take, in milliseconds. */
  duration: number;
  now: number;
  /** How many jobs it counts as. */
  count: number;
}

/** `limit`: the answer of the caller's record. */
export function exceeded(
  limit: Exclude<ReserveAnswer, "reserved" | "known">,
  { jobs: maxJobs, bytes }: CallerLimits,
  { duration, now, count }: RefusedStart,
): NotStarted {
  if (typeof limit === "object") return new NotStarted(limit.refused);
  if (limit === "stored")
    return new NotStarted(
      `what is stored of your jobs comes to the ${bytes} bytes that a caller may have (MAX_STORED_BYTES). ` +
        "Room comes back when ended jobs are removed: by forget_jobs, and by the deployment's retention",
    );
  const { ms, words } = lengthOf(duration);
  const minutes = Math.ceil((ms - (now % ms)) / 60_000);
  const counts = count === 1 ? "" : `this counts as ${count} jobs, and `;
  const next =
    count > maxJobs
      ? `Trying again does not help. Ask for at most ${maxJobs} at once`
      : `Try again in ${minutes} minutes`;
  return new NotStarted(`${counts}a caller may start ${maxJobs} jobs that take up to ${words} in ${words}. ${next}`);
}
