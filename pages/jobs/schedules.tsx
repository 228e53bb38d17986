import type { FC } from "hono/jsx/dom";
import type { ScheduleView } from "../../core/jobs/index.ts";
import { jobPath, Section, Time, useAction } from "../lib/components.tsx";
import { call } from "../lib/server.ts";

/** The viewer's schedules, the next to fire first, each with its last firings; renders nothing if there are none. */
export const Schedules: FC<{ schedules?: ScheduleView[] | undefined; onEnd(): void }> = ({ schedules = [], onEnd }) => {
  const { attempt, problem } = useAction();
  if (schedules.length === 0) return null;
  const end = async (job_name: string) => {
    if (!confirm(`End ${job_name} for good? Jobs that it has started continue.`)) return;
    await attempt(() => call("cancel_job", { job_names: [job_name] }));
    onEnd();
  };
  return (
    <Section id="schedules" title="Schedules">
      {problem}
      <ul class="entries">
        {schedules.map(({ job_name, next_at, last, isOfDefinition }) => (
          <li key={job_name}>
            <div>
              <a href={jobPath(job_name)}>{job_name}</a>{" "}
              <span class="muted">{next_at === undefined ? "" : "next "}</span>
              {next_at !== undefined && <Time at={next_at} />}
              {last.map(({ text, isJob }) => (
                <span class="doing muted" key={text}>
                  {isJob ? <a href={jobPath(text)}>{text}</a> : text}
                </span>
              ))}
            </div>
            {isOfDefinition ? (
              <span class="muted">by its tool's definition</span>
            ) : (
              <button type="button" class="danger" aria-label={`End ${job_name}`} onClick={() => end(job_name)}>
                End
              </button>
            )}
          </li>
        ))}
      </ul>
    </Section>
  );
};
