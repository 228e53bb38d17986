import { type Child, type FC, useState } from "hono/jsx/dom";
import type { TimelineEntry } from "../../core/jobs/index.ts";
import { lengthOf, Time } from "../lib/components.tsx";
import type { JobInfo } from "../lib/server.ts";

/** How many of the latest records are shown at first. */
const FIRST_ENTRIES = 12;

/** The history of a job, from the records that the job keeps. */
export const Timeline: FC<{ job: JobInfo; entries: TimelineEntry[] }> = ({ job, entries }) => {
  const { finished_at } = job;
  const [showsAll, setShowsAll] = useState(false);
  const visibleEntries = entries.filter(({ kind }) => kind !== "reached" && kind !== "alive");
  const hiddenCount = showsAll ? 0 : Math.max(0, visibleEntries.length - FIRST_ENTRIES);
  return (
    <ol class="timeline">
      <Item at={Date.parse(job.started_at)} mark="done">
        Started
      </Item>
      {hiddenCount > 0 && (
        <li>
          <button type="button" class="quiet" onClick={() => setShowsAll(true)}>
            Show {hiddenCount} more before these
          </button>
        </li>
      )}
      {visibleEntries.slice(hiddenCount).map((entry) => (
        <Entry key={entry.n} entry={entry} />
      ))}
      {finished_at !== undefined &&
        !(job.status === "cancelled" && entries.some(({ kind }) => kind === "cancelled")) && (
          <Item at={Date.parse(finished_at)} mark={job.status === "complete" ? "done" : "bad"}>
            {END_WORDS[job.status]}
          </Item>
        )}
    </ol>
  );
};

const END_WORDS: Record<JobInfo["status"], string> = {
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
  const { kind, at, endedAt, error } = entry;
  const isOpen = endedAt === undefined && kind !== "begin" && kind !== "race";
  const mark = kind === "retry" || error !== undefined ? "bad" : isOpen ? "open" : "done";
  return (
    <Item at={at} mark={mark}>
      <Event entry={entry} />
    </Item>
  );
};

const Event: FC<{ entry: TimelineEntry }> = ({
  entry: { kind, op, at, until, endedAt, attempt, error, message, by },
}) => {
  const name = <strong>{op}</strong>;
  switch (kind) {
    case "cancelled":
      return <>{message ?? (by === "deadline" ? "Its deadline came" : "Cancelled")}: what follows is its clean-up</>;
    case "sleep":
      return (
        <>
          {name}: {endedAt === undefined ? "sleeps until " : "slept until "}
          <Time at={endedAt ?? until ?? at} />
        </>
      );
    case "retry":
      return (
        <>
          {name}: attempt {attempt} failed, {error}. The next begins after {lengthOf((until ?? at) - at)}
        </>
      );
    case "ask":
      return (
        <>
          Asked: {message}
          {endedAt !== undefined && " (answered "}
          {endedAt !== undefined && <Time at={endedAt} />}
          {endedAt !== undefined && ")"}
        </>
      );
    case "begin":
      return <>{name} begun</>;
    case "start":
      return (
        <>
          Started another job: {name}
          {error !== undefined && `, ${error}`}
        </>
      );
    case "race":
      return <>{name}: decided</>;
    default:
      return (
        <>
          {name}
          {error === undefined ? " done" : ` failed: ${error}`}
        </>
      );
  }
};
