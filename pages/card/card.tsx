/** The content of a card. */
import { useMemo, useState } from "hono/jsx/dom";
import type { View } from "../../core/author/index.ts";
import type { drawChart } from "../chart/chart.ts";
import { Chart } from "../chart/frame.tsx";
import { type FileSource, Files } from "../job/files.tsx";
import { Partial } from "../job/partial.tsx";
import { Tree } from "../job/tree.tsx";
import { dateIn, lengthOf, Time, useAction, useNow } from "../lib/components.tsx";
import { Fields, valuesOf } from "../lib/form.tsx";
import type { FormSchema } from "../lib/server.ts";
import type { CardState, Follower } from "./follow.ts";
import type { Host } from "./host.ts";
import type { CardFile, Job } from "./job.ts";

export interface CardProps {
  host: Host;
  /** The title of the called tool, if the host reports it. */
  title: string | undefined;
  state: CardState;
  follower: Follower;
}

const STATUS_WORDS: Record<Job["status"], string> = {
  running: "Running",
  complete: "Complete",
  failed: "Failed",
  cancelled: "Cancelled",
  timed_out: "Not done in time",
  not_found: "Not found",
};

export function Card({ host, title, state, follower }: CardProps) {
  const { job, result, pollError } = state;
  const notice = pollError === undefined ? state.notice : `Not connected, trying again. ${pollError}`;
  const files = useMemo(() => filesThrough(host, job?.chart), [job?.chart]);
  const asks = job?.questions?.length ?? 0;
  const url = job?.view_url;
  const status = asks > 0 ? "asks" : (job?.status ?? "running");
  const word = asks > 0 ? "Waiting for your answer" : job ? STATUS_WORDS[job.status] : result ? "Complete" : "Starting";
  return (
    <>
      <header>
        <h1>{title ?? job?.title ?? "Job"}</h1>
        <span class={`status ${status}`} role="status">
          {word}
        </span>
      </header>
      {job ? <div class="name">{job.job_name}</div> : null}
      {job?.status === "running" ? <Activity job={job} view={job.view} /> : null}
      {job?.error === undefined ? null : <p>{job.error}</p>}
      {job?.newer === undefined ? null : <p class="quiet">It was started again: {job.newer}</p>}
      {job?.questions?.map(({ question, message, requestedSchema }) => (
        <Question
          key={question}
          id={question}
          message={message}
          schema={requestedSchema}
          onAnswer={(content) =>
            follower.act("answer_for_user", { job_name: job.job_name, question, answer: JSON.stringify(content) })
          }
        />
      ))}
      {job?.job_files ? <Files files={job.job_files} source={files} /> : null}
      {result?.value !== undefined ? <Result host={host} job={job} value={result.value} /> : null}
      <div class="actions">
        {job?.status === "running" ? <Cancel job={job} follower={follower} /> : null}
        {url === undefined ? null : (
          <button type="button" onClick={() => host.openLink(url)}>
            Open its page
          </button>
        )}
      </div>
      {notice === undefined ? null : (
        <div class="notice" role="alert">
          {notice}
        </div>
      )}
    </>
  );
}

function Activity({ job, view }: { job: Job; view: View | undefined }) {
  const now = useNow();
  const { progress, step, doing, started_at } = job;
  const until = view?.as === "countdown" ? dateIn(job.arguments, view.until) : undefined;
  const age = started_at === undefined ? undefined : now - Date.parse(started_at);
  const next = step?.next === undefined || step.next <= now ? "" : `, next in ${lengthOf(step.next - now)}`;
  return (
    <>
      {until === undefined ? null : (
        <>
          <div class="count">{lengthOf(Math.max(until - now, 0))}</div>
          <div class="quiet">
            until <Time at={until} />
          </div>
        </>
      )}
      {progress?.total === undefined ? null : (
        <progress value={progress.done} max={progress.total} aria-label={`${progress.done} of ${progress.total}`} />
      )}
      {step?.error === undefined ? (
        doing === undefined || job.questions?.length ? null : (
          <p>{doing}</p>
        )
      ) : (
        <p>
          {step.name}: attempt {step.attempt - (step.next === undefined ? 0 : 1)} failed{next}. {step.error}
        </p>
      )}
      {job.partial ? <Partial partial={job.partial} /> : null}
      {age === undefined || until !== undefined ? null : <div class="quiet">for {lengthOf(age)}</div>}
    </>
  );
}

/** Cancels only at a second press, because a cancelled job cannot be continued. */
function Cancel({ job, follower }: { job: Job; follower: Follower }) {
  const [isSure, setSure] = useState(false);
  const press = () => {
    if (!isSure) return setSure(true);
    setSure(false);
    return void follower.act("cancel_job", { job_names: [job.job_name] });
  };
  return (
    <>
      <button type="button" onClick={press}>
        {isSure ? "Really cancel?" : "Cancel"}
      </button>
      {isSure ? (
        <button type="button" onClick={() => setSure(false)}>
          Keep it
        </button>
      ) : null}
    </>
  );
}

interface ResultProps {
  host: Host;
  job: Job | undefined;
  value: unknown;
}

function Result({ host, job: { view, chart: program } = {} as Job, value }: ResultProps) {
  const [isChart, setChart] = useState(view?.as === "chart");
  if (view?.as !== "chart" || !isChart) return <Tree value={value} />;
  return <Chart view={view} result={value} load={() => loadDrawing(host, program)} onFailure={() => setChart(false)} />;
}

/** How a card gets files: its host reads those that are small enough for a resource, and opens the download address of any file. */
function filesThrough(host: Host, program: string | undefined): FileSource<CardFile> {
  const read = async ({ uri, size }: CardFile) =>
    host.reads && size <= MAX_RESOURCE_BYTES ? host.read(uri) : undefined;
  return {
    async address(file) {
      const { blob, text } = (await read(file)) ?? {};
      if (text !== undefined) return `data:${file.mimeType},${encodeURIComponent(text)}`;
      return blob === undefined ? undefined : `data:${file.mimeType};base64,${blob}`;
    },
    async text(file) {
      const { blob, text } = (await read(file)) ?? {};
      // The edge gives a text as it is, and one that is not UTF-8 as bytes.
      if (text !== undefined) return { text: text.replace(/^\ufeff/, ""), isComplete: true };
      if (blob === undefined) return undefined;
      const bytes = Uint8Array.from(atob(blob), (byte) => byte.charCodeAt(0));
      return { text: new TextDecoder().decode(bytes), isComplete: true };
    },
    link: ({ name, url }) =>
      url === undefined ? (
        name
      ) : (
        <button type="button" onClick={() => host.openLink(url)}>
          Download {name}
        </button>
      ),
    loadChart: () => loadDrawing(host, program),
  };
}

/** The largest file that the edge returns as a resource. */
const MAX_RESOURCE_BYTES = 1_000_000;

type Draw = typeof drawChart;
const globals = globalThis as { drawChart?: Draw };

/** Loads the function that draws charts: the host, if it reads resources, reads its program as one. */
async function loadDrawing(host: Host, uri: string | undefined): Promise<Draw> {
  if (!globals.drawChart && uri !== undefined && host.reads) {
    const script = document.createElement("script");
    script.textContent = (await host.read(uri))?.text ?? "";
    document.head.append(script);
  }
  if (!globals.drawChart) throw new Error("the chart's program was not run");
  return globals.drawChart;
}

interface QuestionProps {
  id: string;
  message: string;
  schema: FormSchema;
  /** `content` is null if the user declines. */
  onAnswer(content: Record<string, unknown> | null): Promise<void>;
}

function Question({ id, message, schema, onAnswer }: QuestionProps) {
  const { attempt, isBusy } = useAction();
  // The frames of some hosts do not allow forms to be submitted.
  const answer = (event: Event) => {
    const form = (event.currentTarget as HTMLElement).closest("form") as HTMLFormElement;
    if (form.reportValidity()) void attempt(() => onAnswer(valuesOf(schema, form)));
  };
  return (
    <form>
      <p>{message}</p>
      <Fields id={id} schema={schema} />
      <div class="actions">
        <button type="button" class="main" disabled={isBusy} onClick={answer}>
          Answer
        </button>
        <button type="button" disabled={isBusy} onClick={() => attempt(() => onAnswer(null))}>
          Decline
        </button>
      </div>
    </form>
  );
}
