/** The data that the server stores for the viewer: its size, a download of it, and its removal. */
import { type FC, useState } from "hono/jsx/dom";
import { partsIn } from "../../core/resonate/index.ts";
import { megabytes, Section, useAction } from "../lib/components.tsx";
import { download } from "../lib/download.ts";
import { call, job, type ListedJob, probeStatus, Refusal, resultOf } from "../lib/server.ts";

/** The number of jobs in one request of a list or a removal. */
const JOBS_PER_REQUEST = 100;
/** The pause after a refusal for too many requests. */
const LIMIT_PAUSE_MS = 5_000;

export interface StoredSize {
  bytes: number;
  limit: number;
}

export const StoredData: FC<{ size: StoredSize | undefined; onChange(): void }> = ({ size, onChange }) => {
  const [message, setMessage] = useState("");
  const { attempt, isBusy, problem } = useAction();
  const run = async (work: (report: (text: string) => void) => Promise<string>) => {
    setMessage("");
    await attempt(async () => setMessage(await work(setMessage)));
    onChange();
  };
  return (
    <Section id="stored-data" title="Your stored data">
      {size && (
        <p>
          {megabytes(size.bytes)} of at most {megabytes(size.limit)} are stored of your jobs.
        </p>
      )}
      <div class="actions">
        <button type="button" disabled={isBusy} onClick={() => run(save)}>
          Download all
        </button>
        <button
          type="button"
          class="danger"
          disabled={isBusy}
          onClick={() =>
            confirm("Remove all ended jobs that are yours alone, with their results, for good?") && run(forget)
          }
        >
          Remove ended jobs
        </button>
      </div>
      <p class="muted" aria-live="polite">
        {message}
      </p>
      {problem}
    </Section>
  );
};

/** Downloads each job with its arguments, result and timeline. */
async function save(report: (text: string) => void): Promise<string> {
  const all: unknown[] = [];
  for (const { job_name } of await listAll()) {
    const jobData = await readJob(job_name).catch((error) => {
      // The job may have been removed since it was listed.
      if (!(error instanceof Refusal && error.status === 404)) throw error;
    });
    if (jobData) all.push(jobData);
    report(`${all.length} read …`);
  }
  download("jobs.json", "application/json", JSON.stringify(all, null, 2));
  return `${all.length} jobs are in the file.`;
}

async function readJob(job_name: string): Promise<object> {
  const info = await retryWhenLimited(() => job(job_name, 1));
  const { entries } = info.timeline;
  for (let from = 1, { next } = info.timeline; next > from;) {
    from = next;
    const { timeline } = await retryWhenLimited(() => job(job_name, from));
    entries.push(...timeline.entries);
    next = timeline.next;
  }
  const { task: _task, may_write: _may, timeline: _timeline, ...rest } = info;
  try {
    const result = "result" in info && {
      result: await resultOf(info, (args) => retryWhenLimited(() => probeStatus(args))),
    };
    return { ...rest, ...result, timeline: entries };
  } finally {
    // If the result was read in parts, this shows whether the job was removed meanwhile.
    if (partsIn(info.result)) await retryWhenLimited(() => job(job_name, info.timeline.next));
  }
}

interface ForgetAnswer {
  forgotten: string[];
  hidden?: string[];
  not_found: string[];
}

async function forget(report: (text: string) => void): Promise<string> {
  const endedJobs = (await listAll()).filter(({ status, cleanup }) => status !== "running" && cleanup !== "running");
  const counts = { removed: 0, hidden: 0, shared: 0 };
  for (let i = 0; i < endedJobs.length; i += JOBS_PER_REQUEST) {
    const job_names = endedJobs.slice(i, i + JOBS_PER_REQUEST).map(({ job_name }) => job_name);
    const answer = await retryWhenLimited(() => call<ForgetAnswer>("forget_jobs", { job_names }));
    counts.removed += answer.forgotten.length;
    counts.hidden += answer.hidden?.length ?? 0;
    counts.shared += answer.not_found.length;
    report(`${i + job_names.length} of ${endedJobs.length} …`);
  }
  return [
    `${counts.removed} jobs are removed.`,
    ...(counts.hidden > 0 ? [`${counts.hidden} are hidden until the operator's retention removes them.`] : []),
    ...(counts.shared > 0 ? [`${counts.shared} are not yours alone, and stay.`] : []),
  ].join(" ");
}

async function listAll(): Promise<ListedJob[]> {
  const all: ListedJob[] = [];
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const args = { limit: JOBS_PER_REQUEST, ...(cursor !== undefined && { cursor }) };
    const answer = await retryWhenLimited(() => call<{ jobs: ListedJob[]; next_cursor?: string }>("list_jobs", args));
    all.push(...answer.jobs);
    cursor = answer.next_cursor;
  }
  return all;
}

/** Repeats a request that was refused because there were too many. */
async function retryWhenLimited<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof Refusal && error.status === 429)) throw error;
      await new Promise((resolve) => setTimeout(resolve, LIMIT_PAUSE_MS));
    }
  }
}
