import type { FC } from "hono/jsx/dom";
import { lengthOf, Time, useNow } from "../lib/components.tsx";
import type { JobInfo } from "../lib/server.ts";

/** What a running job does: its progress, its step and attempt, or the end of its sleep. */
export const Doing: FC<{ job: JobInfo }> = ({ job }) => {
  const now = useNow();
  const { message, progress, step, sleeping_until, awaiting, blocked, spent = {} } = job.doing;
  const next = step?.next;
  return (
    <div class="doing-now" aria-live="polite">
      {job.waits && <p>Waits for a worker to take it</p>}
      {blocked !== undefined && <p class="notice error">It cannot go on: {blocked}</p>}
      {message !== undefined && <p>{message}</p>}
      {progress && (
        <p class="progress">
          {progress.total !== undefined && (
            <progress aria-label="Progress" value={progress.done} max={progress.total} />
          )}
          <span>
            {progress.done}
            {progress.total !== undefined && ` of ${progress.total}`}
          </span>
        </p>
      )}
      {step && (
        <p>
          Step <strong>{step.name}</strong>, attempt {step.attempt}
          {step.error !== undefined && `; the one before failed: ${step.error}`}
          {next !== undefined && next > now && `; it begins in ${lengthOf(next - now)}`}
        </p>
      )}
      {Object.entries(spent).map(([of, each]) => (
        <p key={of}>
          {each.spent} of {each.limit} {of} spent
        </p>
      ))}
      {!step && sleeping_until !== undefined && sleeping_until > now && (
        <p>
          Sleeps until <Time at={sleeping_until} />
        </p>
      )}
      {!step && awaiting !== undefined && awaiting > 0 && (
        <p>{awaiting === 1 ? "Waits for a job" : `Waits for ${awaiting} jobs`}</p>
      )}
    </div>
  );
};
