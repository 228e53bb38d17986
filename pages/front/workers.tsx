/** Whether workers take jobs, which shows in the newest of the viewer's own that runs. */
import { type FC, useEffect, useState } from "hono/jsx/dom";
import { jobPath, lengthOf, Part, useNow } from "../lib/components.tsx";
import { job as askJob, call, type ListedJob } from "../lib/server.ts";

/** How often it is looked at while the page is seen, and how long a worker is given to take a job; in milliseconds. */
const EVERY = 10_000;
const SOON = 5_000;

/** A job that no worker takes; null where none waits. */
type Waiting = Pick<ListedJob, "job_name" | "started_at"> | null;

async function look(): Promise<Waiting> {
  const { jobs } = await call<{ jobs: ListedJob[] }>("list_jobs", { status: "running", limit: 20 });
  // One that says what it does has been taken.
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
  useEffect(() => {
    const tick = () => {
      // Where it cannot be asked, or not yet, nothing is said.
      if (document.visibilityState === "visible") look().then(setWaiting, () => setWaiting(undefined));
    };
    tick();
    const ticker = setInterval(tick, EVERY);
    return () => clearInterval(ticker);
  }, []);
  if (!waiting) return <Part name="Workers" isKnown={waiting === null} isWell said="no job of yours waits for one" />;
  return (
    <Part name="Workers" isKnown isWell={false} said="jobs are waiting: no worker takes them">
      {" · "}
      <a href={jobPath(waiting.job_name)}>{waiting.job_name}</a> for {lengthOf(now - Date.parse(waiting.started_at))}
    </Part>
  );
};
