import { type FC, useState } from "hono/jsx/dom";
import { Tree } from "../job/tree.tsx";
import { Fact, Notice, Scroll, Section, StatusChip, Time, useAction, usePolling } from "../lib/components.tsx";
import type { Status } from "../lib/server.ts";
import { Act, jobLink } from "./actions.tsx";
import { type ReportedJob, job as readJob } from "./requests.ts";

/** How often the job is read while the page is visible. */
const POLL_INTERVAL_MS = 5_000;

const size = (bytes: number) => (bytes < 1_000 ? `${bytes} B` : `${(bytes / 1_000).toFixed(1)} KB`);

/** One job as operators see it. Its arguments and result are hidden until the operator requests them. */
export const Job: FC<{ name: string }> = ({ name }) => {
  const [job, setJob] = useState<ReportedJob | undefined>(undefined);
  const [problem, setProblem] = useState("");
  const read = () =>
    readJob(name, false).then(
      (answer) => {
        setJob(answer);
        setProblem("");
      },
      (error) => setProblem(error.message),
    );
  usePolling(read, POLL_INTERVAL_MS);
  if (problem !== "") return <Notice kind="error">{problem}</Notice>;
  if (!job) return <p class="muted">…</p>;
  const { failure, wait, doing, newer } = job;
  return (
    <>
      <h1 class="name">{name}</h1>
      <Facts job={job} />
      {newer && (
        <p class="notice">
          A newer attempt is {newer.status}: <a href={jobLink(newer.job)}>{newer.job}</a>
        </p>
      )}
      {job.error !== undefined && <Notice kind="error">{job.error}</Notice>}
      {doing.blocked !== undefined && <Notice kind="error">Blocked: {doing.blocked}</Notice>}
      {wait && !doing.blocked && (
        <p class="quiet">
          {wait.state}: {wait.says}
        </p>
      )}
      {job.questions.map(({ question, message }) => (
        <p class="quiet" key={question}>
          It asks: {message}
        </p>
      ))}
      <JobActions name={name} job={job} onDone={read} />
      {failure?.stack && (
        <Section id="stack" title="Stack">
          <Scroll label="The stack">
            <pre>{failure.stack}</pre>
          </Scroll>
        </Section>
      )}
      <Journal entries={job.timeline} />
      <Values name={name} />
    </>
  );
};

const Facts: FC<{ job: ReportedJob }> = ({ job }) => {
  const { lease, failure, wait } = job;
  const worker = (failure ?? wait)?.worker;
  return (
    <dl class="facts">
      <Fact name="State">
        <StatusChip status={job.status as Status} />
      </Fact>
      <Fact name="Kind">{job.kind}</Fact>
      <Fact name="Code">
        version {job.version}
        {job.version !== job.deployed_version && `, deployed is ${job.deployed_version}`}
      </Fact>
      <Fact name="Started">
        <Time at={job.started_at ?? ""} />
      </Fact>
      <Fact name="Deadline">
        <Time at={job.deadline} />
      </Fact>
      <Fact name="Caller">{job.caller || "not authenticated"}</Fact>
      <Fact name="Request">{job.request ?? "none"}</Fact>
      <Fact name="Stored">{size(job.bytes)}</Fact>
      {lease && (
        <Fact name="Task">
          {lease.state}, taken {lease.version === 1 ? "once" : `${lease.version} times`}
        </Fact>
      )}
      {worker !== undefined && <Fact name="Worker">{worker.slice(0, 8)}</Fact>}
    </dl>
  );
};

const JobActions: FC<{ name: string; job: ReportedJob; onDone(): void }> = ({ name, job, onDone }) => {
  const isRunning = job.status === "running";
  return (
    <p class="actions">
      {!isRunning && job.status !== "complete" && (
        <>
          <Act action={{ do: "retry", jobs: [name], from: "last" }} words="Try again" onDone={onDone} />
          <Act action={{ do: "retry", jobs: [name], from: "start" }} words="Try again from the start" onDone={onDone} />
        </>
      )}
      {isRunning && (
        <>
          {job.doing.blocked !== undefined && (
            <Act action={{ do: "retry", jobs: [name] }} words="Check it again" onDone={onDone} />
          )}
          <Act action={{ do: "pause", of: { jobs: [name] } }} words="Pause" />
          <Act action={{ do: "resume", of: { jobs: [name] } }} words="Resume" />
          <Act action={{ do: "cancel", jobs: [name] }} words="Cancel" onDone={onDone} />
        </>
      )}
    </p>
  );
};

type JournalEntry = ReportedJob["timeline"][number];

const Journal: FC<{ entries: JournalEntry[] }> = ({ entries }) => (
  <Section id="journal" title="Journal">
    <ol class="timeline">
      {entries.map((entry) => (
        <li key={entry.n} class={markOf(entry)}>
          <Time at={entry.at} />{" "}
          <span>
            {entry.kind} {entry.op}
            {entry.attempt !== undefined && ` attempt ${entry.attempt}`}
            {entry.error !== undefined && `: ${entry.error}`}{" "}
            <span class="muted">{entry.bytes !== undefined && size(entry.bytes)}</span>
          </span>
        </li>
      ))}
    </ol>
  </Section>
);

function markOf({ kind, endedAt, error }: JournalEntry): string {
  if (error !== undefined) return "bad";
  return endedAt === undefined && /sleep|ask|retry/.test(kind) ? "open" : "done";
}

const Values: FC<{ name: string }> = ({ name }) => {
  const [values, setValues] = useState<Pick<ReportedJob, "args" | "result"> | undefined>(undefined);
  const { attempt, problem } = useAction();
  const show = () =>
    attempt(async () => {
      const { args, result } = await readJob(name, true);
      setValues({ args, result });
    });
  return (
    <Section id="values" title="Arguments and result">
      {problem}
      {values ? (
        <Tree value={values} />
      ) : (
        <p class="actions">
          <button type="button" onClick={show}>
            Show them
          </button>
          <span class="muted">The audit log notes that you read them.</span>
        </p>
      )}
    </Section>
  );
};
