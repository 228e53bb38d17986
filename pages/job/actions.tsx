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
  const [isAgain, setAgain] = useState(false);
  const isRunning = job.status === "running";
  const columns = job.view?.as === "chart" ? columnsOf(job.view, job.result) : undefined;
  const cancel = async () => {
    if (!confirm("Stop this job for good?")) return;
    await attempt(() => call("cancel_job", { job_names: [job.job_name] }));
    onDone();
  };
  const save = async () =>
    download(`${job.job_name}.json`, "application/json", JSON.stringify(await resultOf(job), null, 2));
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
          <button type="button" aria-expanded={isAgain} onClick={() => setAgain(!isAgain)}>
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
        <TellMe job={job} />
      </div>
      {isAgain && tool && (
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
              if (name !== undefined && name !== job.job_name) {
                location.href = jobPath(name);
                return;
              }
              setAgain(false);
              onDone();
            }}
          />
        </div>
      )}
    </section>
  );
};

/** Whether pages may make notifications. In Chrome on Android they may not; only without permission, a try shows nothing. */
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
const TellMe: FC<{ job: JobInfo }> = ({ job }) => {
  const [isWanted, setWanted] = useState(false);
  const { status, job_name } = job;
  useEffect(() => {
    if (!isWanted || status === "running") return;
    setWanted(false);
    new Notification(job_name, { body: `The job is ${status.replace("_", " ")}.`, tag: job_name });
  }, [isWanted, status]);
  if (status !== "running" || !CAN_NOTIFY) return null;
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={isWanted}
        onChange={async (event: Event) => {
          const { checked } = event.target as HTMLInputElement;
          setWanted(checked && (await Notification.requestPermission()) === "granted");
        }}
      />
      Tell me when it is done
    </label>
  );
};
