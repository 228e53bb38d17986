/** The content of a card. */
import { useEffect, useMemo, useRef, useState } from "hono/jsx/dom";
import type { ChartView, View } from "../../core/definitions/view.ts";
import type { Chart, drawChart } from "../chart/chart.ts";
import { type FileSource, Files } from "../job/files.tsx";
import { Partial } from "../job/partial.tsx";
import { Tree } from "../job/tree.tsx";
import { dateIn, lengthOf, Time, useNow } from "../lib/components.tsx";
import { Fields, valuesOf } from "../lib/form.tsx";
import type { FormSchema } from "../lib/server.ts";
import type { Follower, Seen } from "./follow.ts";
import type { Host } from "./host.ts";
import type { CardFile, Job } from "./job.ts";

export interface CardProps {
  host: Host;
  /** The title of the called tool, if the host tells it. */
  title: string | undefined;
  seen: Seen;
  follower: Follower;
  /** Changes with the host's colors, so that the chart is drawn again. */
  theme: number;
}

const WORDS: Record<Job["status"], string> = {
  running: "Running",
  complete: "Complete",
  failed: "Failed",
  cancelled: "Cancelled",
  timed_out: "Not done in time",
  not_found: "Not found",
};

export function Card({ host, title, seen, follower, theme }: CardProps) {
  const { job, result, lost } = seen;
  const notice = lost === undefined ? seen.notice : `Not connected, trying again. ${lost}`;
  const files = useMemo(() => filesThrough(host, job?.chart, theme), [job?.chart, theme]);
  const asks = job?.questions?.length ?? 0;
  const status = asks > 0 ? "asks" : (job?.status ?? "running");
  const word = asks > 0 ? "Waiting for your answer" : job ? WORDS[job.status] : result ? "Complete" : "Starting";
  return (
    <>
      <header>
        <h1>{title ?? job?.title ?? "Job"}</h1>
        <span class={`status ${status}`} role="status">
          {word}
        </span>
      </header>
      {job ? <div class="name">{job.job_name}</div> : null}
      {job?.status === "running" ? <Running job={job} view={job.view} /> : null}
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
      {result?.value !== undefined ? <Result {...{ host, job, theme, value: result.value }} /> : null}
      <div class="actions">
        {job?.status === "running" ? <Cancel job={job} follower={follower} /> : null}
        {job?.view_url === undefined ? null : (
          <button
            type="button"
            onClick={() => void host.request("ui/open-link", { url: job.view_url }).catch(() => {})}
          >
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

function Running({ job, view }: { job: Job; view: View | undefined }) {
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
  theme: number;
}

function Result({ host, job: { view, chart: program } = {} as Job, value, theme }: ResultProps) {
  const [isChart, setChart] = useState(view?.as === "chart" && program !== undefined && host.reads);
  if (view?.as !== "chart" || program === undefined || !isChart) return <Tree value={value} />;
  return <Drawn {...{ host, program, view, value, theme }} onFailure={() => setChart(false)} />;
}

interface DrawnProps {
  host: Host;
  program: string;
  view: ChartView;
  value: unknown;
  theme: number;
  /** Called if there is nothing to draw, the browser cannot draw it, or the host does not allow it. */
  onFailure(): void;
}

function Drawn({ host, program, view, value, theme, onFailure }: DrawnProps) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let isOver = false;
    let chart: Chart | undefined;
    loaded(host, program)
      .then((draw) => {
        if (isOver || !element.current) return;
        chart = draw(element.current, view, value);
        if (!chart) onFailure();
      })
      .catch(onFailure);
    return () => {
      isOver = true;
      chart?.destroy();
    };
  }, [value, theme]);
  return <div class="chart" ref={element} />;
}

/** How a card gets files: its host reads those that are small enough for a resource, and opens the download address of any file. */
function filesThrough(host: Host, program: string | undefined, theme: number): FileSource<CardFile> {
  const read = async ({ uri, size }: CardFile) =>
    host.reads && size <= RESOURCE
      ? (await host.request<{ contents: Content[] }>("resources/read", { uri })).contents[0]
      : undefined;
  return {
    async address(file) {
      const { blob, text } = (await read(file)) ?? {};
      if (text !== undefined) return `data:${file.mimeType},${encodeURIComponent(text)}`;
      return blob === undefined ? undefined : `data:${file.mimeType};base64,${blob}`;
    },
    async text(file) {
      const { blob, text } = (await read(file)) ?? {};
      // The edge gives a text as it is, and one that is not UTF-8 as bytes.
      if (text !== undefined) return { text: text.replace(/^\ufeff/, ""), isWhole: true };
      if (blob === undefined) return undefined;
      const bytes = Uint8Array.from(atob(blob), (byte) => byte.charCodeAt(0));
      return { text: new TextDecoder().decode(bytes), isWhole: true };
    },
    link: ({ name, url }) =>
      url === undefined ? (
        name
      ) : (
        <button type="button" onClick={() => void host.request("ui/open-link", { url }).catch(() => {})}>
          Download {name}
        </button>
      ),
    Chart: ({ view, result, onFailure }) => {
      useEffect(() => {
        if (program === undefined || !host.reads) onFailure();
      }, []);
      return program === undefined ? null : <Drawn {...{ host, program, view, value: result, theme, onFailure }} />;
    },
  };
}

/** The largest file that the edge returns as a resource, in bytes. */
const RESOURCE = 1_000_000;

interface Content {
  text?: string;
  blob?: string;
}

type Draw = typeof drawChart;
const drawing = globalThis as { drawChart?: Draw };

/** Loads the function that draws charts: the host reads its program as a resource. */
async function loaded(host: Host, uri: string): Promise<Draw> {
  if (!drawing.drawChart) {
    const { contents } = await host.request<{ contents: { text?: string }[] }>("resources/read", { uri });
    const script = document.createElement("script");
    script.textContent = contents[0]?.text ?? "";
    document.head.append(script);
  }
  if (!drawing.drawChart) throw new Error("the chart's program was not run");
  return drawing.drawChart;
}

interface QuestionProps {
  id: string;
  message: string;
  schema: FormSchema;
  /** `content` is null if the user declines. */
  onAnswer(content: Record<string, unknown> | null): Promise<void>;
}

function Question({ id, message, schema, onAnswer }: QuestionProps) {
  const [isSending, setSending] = useState(false);
  const send = async (content: Record<string, unknown> | null) => {
    setSending(true);
    await onAnswer(content);
    setSending(false);
  };
  // The frames of some hosts do not allow forms to be submitted.
  const answer = (event: Event) => {
    const form = (event.currentTarget as HTMLElement).closest("form") as HTMLFormElement;
    if (form.reportValidity()) void send(valuesOf(schema, form));
  };
  return (
    <form>
      <p>{message}</p>
      <Fields id={id} schema={schema} />
      <div class="actions">
        <button type="button" class="main" disabled={isSending} onClick={answer}>
          Answer
        </button>
        <button type="button" disabled={isSending} onClick={() => void send(null)}>
          Decline
        </button>
      </div>
    </form>
  );
}
