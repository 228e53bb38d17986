import { type FC, useEffect, useState } from "hono/jsx/dom";
import { columnsOf, csvOf } from "../chart/columns.ts";
import { jobPath, useAction } from "../lib/components.tsx";
import { download } from "../lib/download.ts";
import { SchemaForm } from "../lib/form.tsx";
import { call, type JobInfo, resultOf, startJob, type ToolInfo } from "../lib/server.ts";

interface ActionProps {
  job: JobInfo;
  tool: ToolInfo | undefined;
  onDone(): void;
}

/** Buttons that cancel a job, start it again and download its result, and a browser notification at its end. */
export const Actions: FC<ActionProps> = ({ job, tool, onDone }) => {
  const { attempt, isBusy, problem } = useAction();
  const [isFormOpen, setFormOpen] = useState(false);
  const isRunning = job.status === "running";
  const columns = job.view?.as === "chart" ? columnsOf(job.view, job.result) : undefined;
  const cancel = async () => {
    if (!confirm("Stop this job for good?")) return;
    await attempt(() => call("cancel_job", { job_names: [job.job_name] }));
    onDone();
  };
  const save = async () =>
    download(`${job.job_name}.json`, "application/json", JSON.stringify(await resultOf(job), null, 2));
  const onStart = () => {
    setFormOpen(false);
    onDone();
  };
  return (
    <section aria-label="Actions">
      {problem}
      <div class="actions">
        {isRunning && job.may_write && (
          <button type="button" class="danger" onClick={cancel}>
            Cancel
          </button>
        )}
        {!isRunning && job.may_write && tool && (
          <button type="button" aria-expanded={isFormOpen} onClick={() => setFormOpen(!isFormOpen)}>
            Start again
          </button>
        )}
        {job.status === "complete" && (
          <button type="button" disabled={isBusy} onClick={() => attempt(save)}>
            Download JSON
          </button>
        )}
        {columns && (
          <button type="button" onClick={() => download(`${job.job_name}.csv`, "text/csv", csvOf(columns))}>
            Download CSV
          </button>
        )}
        <EndNotification job={job} />
      </div>
      {isFormOpen && tool && <StartForm job={job} tool={tool} onStart={onStart} />}
    </section>
  );
};

/** Starts the job again, and opens the page of the new job if it has another name. */
const StartForm: FC<{ job: JobInfo; tool: ToolInfo; onStart(): void }> = ({ job, tool, onStart }) => (
  <div class="card">
    <h2>{tool.title}</h2>
    <p class="muted">The same arguments are the same job: one that is complete and fresh is not run again.</p>
    <SchemaForm
      id="again"
      schema={tool.inputSchema}
      values={job.args as Record<string, unknown>}
      submit="Start"
      onSubmit={async (values) => {
        const name = await startJob(tool, values);
        if (name === undefined || name === job.job_name) onStart();
        else location.href = jobPath(name);
      }}
    />
  </div>
);

/** Whether pages may create notifications. In Chrome on Android they may not; only without permission, a try shows nothing. */
function canNotify(): boolean {
  try {
    if (Notification.permission === "granted") return !/Android.*Chrome/.test(navigator.userAgent);
    return Boolean(new Notification(""));
  } catch {
    return false;
  }
}
const CAN_NOTIFY = canNotify();

/** Offers a browser notification at the end of the job. */
const EndNotification: FC<{ job: JobInfo }> = ({ job }) => {
  const [isRequested, setRequested] = useState(false);
  const { status, job_name } = job;
  useEffect(() => {
    if (!isRequested || status === "running") return;
    setRequested(false);
    new Notification(job_name, { body: `The job is ${status.replace("_", " ")}.`, tag: job_name });
  }, [isRequested, status]);
  if (status !== "running" || !CAN_NOTIFY) return null;
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={isRequested}
        onChange={async (event: Event) => {
          const { checked } = event.target as HTMLInputElement;
          setRequested(checked && (await Notification.requestPermission()) === "granted");
        }}
      />
      Notify me when it is done
    </label>
  );
};
