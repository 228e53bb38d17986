import { type Child, type FC, useState } from "hono/jsx/dom";
import type { TimelineEntry } from "../../core/jobs/feed/timeline.ts";
import { lengthOf, Time } from "../lib/components.tsx";
import type { JobInfo } from "../lib/server.ts";

/** How many records are shown at first: the last. */
const MOST = 12;

/** What the job did, from its start: its own records, where its code keeps any. */
export const Timeline: FC<{ job: JobInfo; entries: TimelineEntry[] }> = ({ job, entries }) => {
  const { finished_at } = job;
  const [isWhole, setWhole] = useState(false);
  const told = entries.filter(({ kind }) => kind !== "heard");
  const hidden = isWhole ? 0 : Math.max(0, told.length - MOST);
  return (
    <ol class="timeline">
      <Item at={Date.parse(job.started_at)} mark="done">
        Started
      </Item>
      {hidden > 0 && (
        <li>
          <button type="button" class="quiet" onClick={() => setWhole(true)}>
            Show {hidden} more before these
          </button>
        </li>
      )}
      {told.slice(hidden).map((entry) => (
        <Entry key={entry.n} entry={entry} />
      ))}
      {finished_at !== undefined && (
        <Item at={Date.parse(finished_at)} mark={job.status === "complete" ? "done" : "bad"}>
          {ENDS[job.status]}
        </Item>
      )}
    </ol>
  );
};

const ENDS: Record<JobInfo["status"], string> = {
  running: "",
  complete: "Complete",
  failed: "Failed",
  cancelled: "Cancelled",
  timed_out: "Ended at its deadline, without a result",
};

const Item: FC<{ at: number; mark: "done" | "bad" | "open"; children?: Child }> = ({ at, mark, children }) => (
  <li class={mark}>
    <Time at={at} /> <span>{children}</span>
  </li>
);

const Entry: FC<{ entry: TimelineEntry }> = ({ entry }) => {
  const { kind, op, at, until, over, attempt, error, message } = entry;
  const name = <strong>{op}</strong>;
  const mark = error !== undefined ? "bad" : over === undefined ? "open" : "done";
  switch (kind) {
    case "sleep":
      return (
        <Item at={at} mark={mark}>
          {name}: {over === undefined ? "sleeps until " : "slept until "}
          <Time at={over ?? until ?? at} />
        </Item>
      );
    case "retry":
      return (
        <Item at={at} mark="bad">
          {name}: attempt {attempt} failed, {error}. The next begins after {lengthOf((until ?? at) - at)}
        </Item>
      );
    case "ask":
      return (
        <Item at={at} mark={mark}>
          Asked: {message}
          {over !== undefined && (
            <>
              {" "}
              (answered <Time at={over} />)
            </>
          )}
        </Item>
      );
    case "begin":
      return (
        <Item at={at} mark="done">
          {name} begun
        </Item>
      );
    case "start":
      return (
        <Item at={at} mark={mark}>
          Started another job: {name}
          {error !== undefined && `, ${error}`}
        </Item>
      );
    case "race":
      return (
        <Item at={at} mark="done">
          {name}: decided
        </Item>
      );
    default:
      return (
        <Item at={at} mark={mark}>
          {name}
          {error === undefined ? " done" : ` failed: ${error}`}
        </Item>
      );
  }
};
