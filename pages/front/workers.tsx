/** Shows whether workers take jobs, judged by the viewer's newest running job. */
import { type FC, useState } from "hono/jsx/dom";
import { jobPath, lengthOf, Part, useNow, usePolling } from "../lib/components.tsx";
import { job as askJob, call, type ListedJob } from "../lib/server.ts";

/** How often jobs are read, and how long a worker may take to take one, in milliseconds. */
const EVERY = 10_000;
const SOON = 5_000;

/** A job that no worker takes; null if no job waits. */
type Waiting = Pick<ListedJob, "job_name" | "started_at"> | null;

async function look(): Promise<Waiting> {
  const { jobs } = await call<{ jobs: ListedJob[] }>("list_jobs", { status: "running", limit: 20 });
  // If a job reports what it does, a worker has taken it.
  const newest = jobs.find(
    ({ started_at, doing }) => doing === undefined && Date.now() - Date.parse(started_at) > SOON,
  );
  if (!newest) return null;
  const { status, waits } = await askJob(newest.job_name, 1);
  return status === "running" && waits ? newest : null;
}

export const Workers: FC = () => {
  const [waiting, setWaiting] = useState<Waiting | undefined>(undefined);
  const now = useNow();
  // After a failed read the state is unknown.
  usePolling(() => look().then(setWaiting, () => setWaiting(undefined)), EVERY);
  if (!waiting) return <Part name="Workers" isKnown={waiting === null} isWell text="no job of yours waits for one" />;
  return (
    <Part name="Workers" isKnown isWell={false} text="jobs are waiting: no worker takes them">
      {" · "}
      <a href={jobPath(waiting.job_name)}>{waiting.job_name}</a> for {lengthOf(now - Date.parse(waiting.started_at))}
    </Part>
  );
};
