import { type FC, useState } from "hono/jsx/dom";
import { Tree } from "../job/tree.tsx";
import { Fact, Notice, Scroll, Section, StatusChip, Time, useAction, usePolling } from "../lib/components.tsx";
import type { Status } from "../lib/server.ts";
import { Act, jobLink } from "./acting.tsx";
import { job as ask, type OneJob } from "./ask.ts";

/** How often the job is read while the page is visible, in milliseconds. */
const EVERY = 5_000;

const size = (bytes: number) => (bytes < 1_000 ? `${bytes} B` : `${(bytes / 1_000).toFixed(1)} KB`);

/** One job as operators see it. Its arguments and result are hidden until the operator requests them. */
export const Job: FC<{ name: string }> = ({ name }) => {
  const [job, setJob] = useState<OneJob | undefined>(undefined);
  const [values, setValues] = useState<Pick<OneJob, "args" | "result"> | undefined>(undefined);
  const [problem, setProblem] = useState("");
  const { attempt, problem: refusal } = useAction();
  const read = () =>
    ask(name, false).then(
      (found) => {
        setJob(found);
        setProblem("");
      },
      (error) => setProblem(error.message),
    );
  usePolling(read, EVERY);
  if (problem !== "") return <Notice kind="error">{problem}</Notice>;
  if (!job) return <p class="muted">…</p>;
  const isRunning = job.status === "running";
  const { lease, failure, wait, doing, newer } = job;
  return (
    <>
      <h1 class="name">{name}</h1>
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
        <Fact name="Caller">{job.caller || "not told apart"}</Fact>
        <Fact name="Request">{job.request ?? "none"}</Fact>
        <Fact name="Stored">{size(job.bytes)}</Fact>
        {lease && (
          <Fact name="Task">
            {lease.state}, taken {lease.version === 1 ? "once" : `${lease.version} times`}
          </Fact>
        )}
        {(failure ?? wait) && <Fact name="Worker">{(failure ?? wait)?.worker.slice(0, 8)}</Fact>}
      </dl>
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
      <p class="actions">
        {!isRunning && job.status !== "complete" && (
          <>
            <Act action={{ do: "retry", jobs: [name], from: "last" }} words="Try again" onDone={read} />
            <Act action={{ do: "retry", jobs: [name], from: "start" }} words="Try again from the start" onDone={read} />
          </>
        )}
        {isRunning && (
          <>
            {doing.blocked !== undefined && (
              <Act action={{ do: "retry", jobs: [name] }} words="Look at it again" onDone={read} />
            )}
            <Act action={{ do: "pause", of: { jobs: [name] } }} words="Pause" />
            <Act action={{ do: "resume", of: { jobs: [name] } }} words="Resume" />
            <Act action={{ do: "cancel", jobs: [name] }} words="Cancel" onDone={read} />
          </>
        )}
      </p>
      {failure?.stack && (
        <Section id="stack" title="Stack">
          <Scroll label="The stack">
            <pre>{failure.stack}</pre>
          </Scroll>
        </Section>
      )}
      <Section id="journal" title="Journal">
        <ol class="timeline">
          {job.timeline.map(({ n, kind, op, at, over, error, attempt, bytes }) => (
            <li
              key={n}
              class={error !== undefined ? "bad" : over === undefined && /sleep|ask|retry/.test(kind) ? "open" : "done"}
            >
              <Time at={at} />{" "}
              <span>
                {kind} {op}
                {attempt !== undefined && ` attempt ${attempt}`}
                {error !== undefined && `: ${error}`} <span class="muted">{bytes !== undefined && size(bytes)}</span>
              </span>
            </li>
          ))}
        </ol>
      </Section>
      <Section id="values" title="Arguments and result">
        {refusal}
        {values ? (
          <Tree value={values} />
        ) : (
          <p class="actions">
            <button
              type="button"
              onClick={() =>
                attempt(async () => {
                  const { args, result } = await ask(name, true);
                  setValues({ args, result });
                })
              }
            >
              Show them
            </button>
            <span class="muted">The audit trail notes that you read them.</span>
          </p>
        )}
      </Section>
    </>
  );
};
