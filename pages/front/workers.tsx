/** Shows whether workers take jobs, judged by the viewer's newest running job. */
import { type FC, useState } from "hono/jsx/dom";
import { jobPath, lengthOf, Part, useNow, usePolling } from "../lib/components.tsx";
import { job as askJob, call, type ListedJob } from "../lib/server.ts";

const POLL_INTERVAL_MS = 10_000;
/** How long a job may wait for a worker before this is shown. */
const PICKUP_TIMEOUT_MS = 5_000;

/** A job that no worker takes; null if no job waits. */
type WaitingJob = Pick<ListedJob, "job_name" | "started_at"> | null;

async function findWaitingJob(): Promise<WaitingJob> {
  const { jobs } = await call<{ jobs: ListedJob[] }>("list_jobs", { status: "running", limit: 20 });
  // If a job reports what it does, a worker has taken it.
  const newest = jobs.find(
    ({ started_at, doing }) => doing === undefined && Date.now() - Date.parse(started_at) > PICKUP_TIMEOUT_MS,
  );
  if (!newest) return null;
  const { status, waits } = await askJob(newest.job_name, 1);
  return status === "running" && waits ? newest : null;
}

export const Workers: FC = () => {
  const [waitingJob, setWaitingJob] = useState<WaitingJob | undefined>(undefined);
  const now = useNow();
  // After a failed read the state is unknown.
  usePolling(() => findWaitingJob().then(setWaitingJob, () => setWaitingJob(undefined)), POLL_INTERVAL_MS);
  if (!waitingJob)
    return <Part name="Workers" isKnown={waitingJob === null} isWell text="no job of yours waits for one" />;
  return (
    <Part name="Workers" isKnown isWell={false} text="jobs are waiting: no worker takes them">
      {" · "}
      <a href={jobPath(waitingJob.job_name)}>{waitingJob.job_name}</a> for{" "}
      {lengthOf(now - Date.parse(waitingJob.started_at))}
    </Part>
  );
};
