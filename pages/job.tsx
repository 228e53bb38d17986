/** One job, live: its state, questions, result and timeline. */
import { type FC, render, useEffect } from "hono/jsx/dom";
import type { FileView } from "../core/tools/index.ts";
import { loadChart } from "./chart/load.ts";
import { Actions } from "./job/actions.tsx";
import { type FileSource, Files } from "./job/files.tsx";
import { Partial } from "./job/partial.tsx";
import { Result } from "./job/result.tsx";
import { Timeline } from "./job/timeline.tsx";
import { Tree } from "./job/tree.tsx";
import { useJob } from "./job/use-job.ts";
import {
  Copy,
  Fact,
  jobPath,
  lengthOf,
  Notice,
  Page,
  Section,
  StatusChip,
  Time,
  Trouble,
  useAbout,
  useAction,
  useNow,
} from "./lib/components.tsx";
import { SchemaForm } from "./lib/form.tsx";
import { answer, beginningOf, type JobInfo } from "./lib/server.ts";
import { SignIn } from "./lib/sign-in.tsx";
import { Subscribers, useSubscribers } from "./lib/subscribers.tsx";

/** The activity of a running job: its progress, its step and attempt, or the end of its sleep. */
const Activity: FC<{ job: JobInfo }> = ({ job }) => {
  const now = useNow();
  const { message, progress, step, sleeping_until, awaiting, blocked, spent = {} } = job.doing;
  const next = step?.next;
  return (
    <div class="doing-now" aria-live="polite">
      {job.waits && <p>Waits for a worker to take it</p>}
      {blocked !== undefined && <p class="notice error">It cannot continue: {blocked}</p>}
      {message !== undefined && <p>{message}</p>}
      {progress && (
        <p class="progress">
          {progress.total !== undefined && (
            <progress aria-label="Progress" value={progress.done} max={progress.total} />
          )}
          <span>
            {progress.done}
            {progress.total !== undefined && ` of ${progress.total}`}
          </span>
        </p>
      )}
      {step && (
        <p>
          Step <strong>{step.name}</strong>, attempt {step.attempt}
          {step.error !== undefined && `; the one before failed: ${step.error}`}
          {next !== undefined && next > now && `; it begins in ${lengthOf(next - now)}`}
        </p>
      )}
      {Object.entries(spent).map(([of, each]) => (
        <p key={of}>
          {each.spent} of {each.limit} {of} spent
        </p>
      ))}
      {!step && sleeping_until !== undefined && sleeping_until > now && (
        <p>
          Sleeps until <Time at={sleeping_until} />
        </p>
      )}
      {!step && awaiting !== undefined && awaiting > 0 && (
        <p>{awaiting === 1 ? "Waits for a job" : `Waits for ${awaiting} jobs`}</p>
      )}
    </div>
  );
};

const name = decodeURIComponent(location.pathname.slice("/jobs/".length));

const Job: FC = () => {
  const about = useAbout();
  const { job, timeline, refresh, ...reads } = useJob(name);
  useEffect(() => {
    document.title = `${job ? `${job.status}: ` : ""}${name}`;
  }, [job?.status]);
  return (
    <Page about={about}>
      <h1 class="name">
        {name} <Copy text={name} what="the name" />
      </h1>
      <Trouble reads={reads}>
        <SignIn about={about} />
      </Trouble>
      {job && !reads.refusal && (
        <>
          <Facts job={job} />
          {job.cleanup && job.cleanup !== "failed" && <p class="quiet">Its clean-up is {job.cleanup}.</p>}
          {job.resumed_from && (
            <p class="quiet">
              It continued from <a href={jobPath(job.resumed_from)}>{job.resumed_from}</a>: steps that were finished
              there were not repeated.
            </p>
          )}
          {job.began_anew && <p class="quiet">It began from the start: {job.began_anew}.</p>}
          {job.newer && (
            <p class="notice">
              A newer attempt is {job.newer.status}: <a href={jobPath(job.newer.job_name)}>{job.newer.job_name}</a>
            </p>
          )}
          {job.status === "running" && <Activity job={job} />}
          {job.questions.map((question) => (
            <Question key={question.key} job={job} question={question} onAnswer={refresh} />
          ))}
          {job.partial && <Partial partial={job.partial} />}
          {job.error !== undefined && <Notice kind="error">{job.error}</Notice>}
          {job.files && job.files.length > 0 && <Files files={job.files} source={FILE_SOURCE} />}
          {(job.status === "complete" || job.view?.as === "countdown") && <Result job={job} />}
          <Actions job={job} tool={about?.tools.find(({ kind }) => kind === job.kind)} onDone={refresh} />
          {job.may_write && <JobSubscribers />}
          <Section id="timeline" title="Timeline">
            <Timeline job={job} entries={timeline} />
          </Section>
          <Section id="arguments" title="Arguments">
            <Tree value={job.args} />
          </Section>
        </>
      )}
    </Page>
  );
};

/** The largest image or sound that the page loads. */
const MAX_MEDIA_BYTES = 50_000_000;

const FILE_SOURCE: FileSource<FileView> = {
  address: async ({ size, path }) => (size > MAX_MEDIA_BYTES ? undefined : path),
  text: ({ size, path }) => beginningOf(path, size),
  link: ({ name, path }) => (
    <a href={path} download={name}>
      {name}
    </a>
  ),
  loadChart,
};

const JobSubscribers: FC = () => {
  const { subscriptions, listeners, refresh } = useSubscribers(name);
  return (
    <Subscribers title="Who is notified of it" subscriptions={subscriptions} listeners={listeners} onEnd={refresh} />
  );
};

const Facts: FC<{ job: JobInfo }> = ({ job }) => {
  const now = useNow();
  const end = job.finished_at === undefined ? now : Date.parse(job.finished_at);
  return (
    <dl class="facts">
      <Fact name="State" isLive>
        <StatusChip status={job.status} asks={job.questions.length > 0} />
      </Fact>
      <Fact name="Kind">{job.kind}</Fact>
      <Fact name="Started">
        <Time at={job.started_at} />
      </Fact>
      <Fact name={job.finished_at === undefined ? "Has run for" : "Took"}>
        {lengthOf(end - Date.parse(job.started_at))}
      </Fact>
      {job.finished_at === undefined && (
        <Fact name="Deadline">
          <Time at={job.deadline} />
        </Fact>
      )}
    </dl>
  );
};

interface QuestionProps {
  job: JobInfo;
  question: JobInfo["questions"][number];
  onAnswer(): void;
}

const Question: FC<QuestionProps> = ({ job, question: { key, message, requestedSchema }, onAnswer }) => {
  const { attempt, isBusy, problem } = useAction();
  const respond = async (response: object) => {
    await answer(job.task ?? "", { [key]: response });
    onAnswer();
  };
  return (
    <section class="card question" aria-labelledby={`question-${key}`}>
      <h2 id={`question-${key}`}>{message}</h2>
      {job.task === undefined ? (
        <p class="muted">
          {job.may_write ? "Answer it in your client." : "Sign in, or go to your chat, to answer it."}
        </p>
      ) : (
        <SchemaForm
          id={`answer-${key}`}
          schema={requestedSchema}
          submit="Answer"
          onSubmit={(content) => respond({ action: "accept", content })}
        >
          <button type="button" disabled={isBusy} onClick={() => attempt(() => respond({ action: "decline" }))}>
            Decline
          </button>
        </SchemaForm>
      )}
      {problem}
    </section>
  );
};

render(<Job />, document.getElementById("page") as HTMLElement);
