/** The data that the server stores for the viewer: its size, a download of it, and its removal. */
import { type FC, useState } from "hono/jsx/dom";
import { partsIn } from "../../core/resonate/parts.ts";
import { megabytes, Section, useAction } from "../lib/components.tsx";
import { download } from "../lib/download.ts";
import { call, job, type ListedJob, probeStatus, Refused, resultOf } from "../lib/server.ts";

/** The number of jobs in one request of a list or a removal. */
const BATCH = 100;
/** The pause after a refusal for too many requests, in milliseconds. */
const PAUSE = 5_000;

export interface Stored {
  bytes: number;
  limit: number;
}

export const Kept: FC<{ stored: Stored | undefined; onChange(): void }> = ({ stored, onChange }) => {
  const [said, setSaid] = useState("");
  const { attempt, isBusy, problem } = useAction();
  const doing = async (work: (say: (text: string) => void) => Promise<string>) => {
    setSaid("");
    await attempt(async () => setSaid(await work(setSaid)));
    onChange();
  };
  return (
    <Section id="kept" title="Your stored data">
      {stored && (
        <p>
          {megabytes(stored.bytes)} of at most {megabytes(stored.limit)} are stored of your jobs.
        </p>
      )}
      <div class="actions">
        <button type="button" disabled={isBusy} onClick={() => doing(save)}>
          Download all
        </button>
        <button
          type="button"
          class="danger"
          disabled={isBusy}
          onClick={() =>
            confirm("Remove all ended jobs that are yours alone, with their results, for good?") && doing(forget)
          }
        >
          Remove ended jobs
        </button>
      </div>
      <p class="muted" aria-live="polite">
        {said}
      </p>
      {problem}
    </Section>
  );
};

/** Downloads each job with its arguments, result and timeline. */
async function save(say: (text: string) => void): Promise<string> {
  const all: unknown[] = [];
  for (const { job_name } of await listed()) {
    const found = await whole(job_name).catch((error) => {
      // The job may have been removed since it was listed.
      if (!(error instanceof Refused && error.status === 404)) throw error;
    });
    if (found) all.push(found);
    say(`${all.length} read …`);
  }
  download("jobs.json", "application/json", JSON.stringify(all, null, 2));
  return `${all.length} jobs are in the file.`;
}

async function whole(job_name: string): Promise<object> {
  const found = await patiently(() => job(job_name, 1));
  const { entries } = found.timeline;
  for (let from = 1, { next } = found.timeline; next > from; ) {
    from = next;
    const { timeline } = await patiently(() => job(job_name, from));
    entries.push(...timeline.entries);
    next = timeline.next;
  }
  const { task: _task, may_write: _may, timeline: _timeline, ...rest } = found;
  try {
    const result = "result" in found && { result: await resultOf(found, (args) => patiently(() => probeStatus(args))) };
    return { ...rest, ...result, timeline: entries };
  } finally {
    // Where the result was read in parts, this tells whether the job was removed meanwhile.
    if (partsIn(found.result)) await patiently(() => job(job_name, found.timeline.next));
  }
}

interface Forgotten {
  forgotten: string[];
  hidden?: string[];
  not_found: string[];
}

async function forget(say: (text: string) => void): Promise<string> {
  const ended = (await listed()).filter(({ status, cleanup }) => status !== "running" && cleanup !== "running");
  let [removed, hidden, shared] = [0, 0, 0];
  for (let i = 0; i < ended.length; i += BATCH) {
    const job_names = ended.slice(i, i + BATCH).map(({ job_name }) => job_name);
    const answer = await patiently(() => call<Forgotten>("forget_jobs", { job_names }));
    removed += answer.forgotten.length;
    hidden += answer.hidden?.length ?? 0;
    shared += answer.not_found.length;
    say(`${i + job_names.length} of ${ended.length} …`);
  }
  return [
    `${removed} jobs are removed.`,
    ...(hidden > 0 ? [`${hidden} are hidden until the operator's retention removes them.`] : []),
    ...(shared > 0 ? [`${shared} are not yours alone, and stay.`] : []),
  ].join(" ");
}

async function listed(): Promise<ListedJob[]> {
  const all: ListedJob[] = [];
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const args = { limit: BATCH, ...(cursor !== undefined && { cursor }) };
    const answer = await patiently(() => call<{ jobs: ListedJob[]; next_cursor?: string }>("list_jobs", args));
    all.push(...answer.jobs);
    cursor = answer.next_cursor;
  }
  return all;
}

/** Repeats a request that was refused because there were too many. */
async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof Refused && error.status === 429)) throw error;
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  }
}
