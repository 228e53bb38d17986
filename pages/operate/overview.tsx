import { type FC, useState } from "hono/jsx/dom";
import type { ChartView } from "../../core/author/index.ts";
import { FREE_PLAN } from "../../core/resonate/index.ts";
import { Chart } from "../chart/frame.tsx";
import { loadChart } from "../chart/load.ts";
import { lengthOf, megabytes, Part, Scroll, Section, Table, Time } from "../lib/components.tsx";
import { Act, jobLink } from "./actions.tsx";
import type { Action, Filter, Overview } from "./requests.ts";

type Server = NonNullable<Overview["resonate"]>;

const VIEW: ChartView = {
  as: "chart",
  x: "time",
  series: [
    { as: "bars", label: "Failed", values: "failed", unit: "jobs" },
    { as: "line", label: "Complete", values: "ended", unit: "jobs" },
  ],
};

/** How long a worker may be silent before it counts as gone. */
const WORKER_TIMEOUT_MS = 30_000;

const filterLink = (filter: Filter) => `#jobs=${encodeURIComponent(JSON.stringify(filter))}`;

/** The part of the page that shows the cause of an alert. */
const LINKS: Readonly<Record<string, string>> = {
  "jobs-fail": "#failures",
  "jobs-blocked": filterLink({ state: "blocked" }),
  "no-worker": "#workers",
  "old-worker": "#workers",
  "slots-taken": "#workers",
  "not-taken": filterLink({ state: "worker" }),
  "mixed-versions": "#workers",
  "storage-full": "#callers",
  "deliveries-fail": "#callers",
};

/** Whether a worker counts as present. Runners always do: they are silent while they sleep, and the next job wakes them. */
const isHere = ({ isRunner, at }: Overview["workers"][number], now: number) => isRunner || at > now - WORKER_TIMEOUT_MS;

const count = (n: number, one: string) => `${n.toLocaleString()} ${one}${n === 1 ? "" : "s"}`;

export const Alerts: FC<{ overview: Overview }> = ({ overview }) => (
  <>
    {overview.alerts.map(({ name, says, since }) => (
      <p key={name} class="notice error" role="alert">
        <strong>{says}</strong> since <Time at={since} /> · <a href={LINKS[name] ?? "#now"}>Check</a> · what to do:{" "}
        <code>docs/operations.md#{name}</code>
      </p>
    ))}
  </>
);

export const Now: FC<{ overview: Overview; onDone(): void }> = ({ overview, onDone }) => {
  const { paused, settings, chart, resonate } = overview;
  return (
    <Section id="now" title="Now">
      <Health overview={overview} />
      <p class="actions">
        {paused.all ? (
          <Act action={{ do: "resume", of: { all: true } }} words="Take jobs again" onDone={onDone} />
        ) : (
          <Act action={{ do: "pause", of: { all: true } }} words="Stop taking jobs" onDone={onDone} />
        )}
        {settings.starts_stopped ? (
          <Act action={{ do: "allow-starts" }} words="Allow starts again" onDone={onDone} />
        ) : (
          <Act action={{ do: "stop-starts" }} words="Stop starts" onDone={onDone} />
        )}
      </p>
      <p class="muted">
        Stop taking jobs: workers hold all jobs where they are. Stop starts: callers' new jobs are refused, others
        continue.
      </p>
      {resonate?.today && <Charges of="today" charges={resonate.today} />}
      {resonate?.yesterday && <Charges of="yesterday" charges={resonate.yesterday} />}
      {(paused.all || settings.starts_stopped) && (
        <p class="notice lost" role="status">
          {[paused.all && "Workers take no jobs.", settings.starts_stopped && "No job is started."]
            .filter(Boolean)
            .join(" ")}
        </p>
      )}
      <EndsChart chart={chart} key={`${overview.span} ${chart.time.at(-1)} ${chart.ended} ${chart.failed}`} />
    </Section>
  );
};

/** The state of workers and of the Resonate server, with counts of the jobs at the workers. */
const Health: FC<{ overview: Overview }> = ({ overview: { workers, at, waits, resonate } }) => {
  const alive = workers.filter((worker) => isHere(worker, at));
  const sum = (of: (slots: (typeof workers)[number]["slots"]) => number) =>
    alive.reduce((n, { slots }) => n + of(slots), 0);
  const stuck = waits.filter(({ state }) => state === "blocked").reduce((n, each) => n + each.n, 0);
  const isKnown = workers.length > 0;
  return (
    <>
      {!isKnown && (
        <p class="notice">
          No worker has reported yet, so it is not known what runs, waits or fails. Workers report if they have the
          edge's address (EDGE_URL or PUBLIC_URL) and its VIEW_KEY; runners inside the account report by themselves.
        </p>
      )}
      <ul class="health" aria-label="Now">
        <Part name="Workers" isKnown={isKnown} isWell={alive.length > 0} text={String(alive.length)} />
        <Part name="Executing" isKnown={isKnown} isWell text={String(sum(({ running }) => running))} />
        <Part
          name="Waiting for a slot"
          isKnown={isKnown}
          isWell={sum((slots) => slots.waiting) === 0}
          text={String(sum((slots) => slots.waiting))}
        />
        <Part
          name="Resonate server"
          isKnown
          isWell={resonate !== undefined}
          text={resonate === undefined ? "no answer" : `${RELEASES[resonate.release]}, ${resonate.ms} ms`}
        />
        {resonate && (
          <Part name="Stored" isKnown isWell={!isNearly(resonate.size, resonate.maxBytes)} text={sizeIn(resonate)} />
        )}
        <Part name="Blocked" isKnown={isKnown} isWell={stuck === 0} text={String(stuck)} />
      </ul>
    </>
  );
};

/** Everything that is paused or blocked, each with a button that undoes it. */
export const PausedAndBlocked: FC<{ overview: Overview; onDone(): void }> = ({ overview, onDone }) => {
  const { paused, settings, kinds_paused, callers } = overview;
  const labelOf = (key: string) => callers.find((caller) => caller.key === key)?.label ?? key;
  const all: { what: string; name: string; action: Action; link?: string }[] = [
    ...kinds_paused.map((kind) => ({ what: "Kind", name: kind, action: { do: "resume" as const, of: { kind } } })),
    ...paused.callers.map((caller) => ({
      what: "Caller",
      name: labelOf(caller),
      action: { do: "resume" as const, of: { caller } },
    })),
    ...paused.jobs.map((job) => ({
      what: "Job",
      name: job,
      link: jobLink(job),
      action: { do: "resume" as const, of: { jobs: [job] } },
    })),
    ...settings.blocked.map((caller) => ({
      what: "Blocked caller",
      name: caller,
      action: { do: "unblock" as const, caller },
    })),
  ];
  if (all.length === 0) return null;
  return (
    <Section id="paused" title="Paused and blocked">
      <ul class="entries">
        {all.map(({ what, name, action, link }) => (
          <li key={`${what} ${name}`}>
            <span>
              {what} {link ? <a href={link}>{name}</a> : <strong>{name}</strong>}
            </span>
            <Act action={action} words={action.do === "unblock" ? "Unblock" : "Resume"} onDone={onDone} />
          </li>
        ))}
      </ul>
    </Section>
  );
};

const RELEASES = { embedded: "embedded", account: "the account's", "0.9.8": "release 0.9", "0.10": "release 0.10" };

const bytesOf = (bytes: number) => (bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`);

const isNearly = (size = 0, maxBytes = Number.POSITIVE_INFINITY) => size > 0.9 * maxBytes;

/** The stored size. A Resonate server that the operator runs does not report it; only its database knows. */
function sizeIn({ size, maxBytes }: Server): string {
  if (size === undefined) return "ask its database";
  return maxBytes === undefined ? bytesOf(size) : `${bytesOf(size)} of ${bytesOf(maxBytes)}`;
}

/** The platform's charges of a day, as numbers and as shares of the free plan. */
const Charges: FC<{ of: string; charges: NonNullable<Server["today"]> }> = ({ of, charges }) => {
  const gbs = (charges.awake / 1_000) * 0.125;
  const part = (n: number, of: number) => `${n.toLocaleString()} (${Math.round((100 * n) / of)} %)`;
  return (
    <p class="muted">
      The Resonate object {of}, UTC: {part(charges.written, FREE_PLAN.rows)} rows written,{" "}
      {part(charges.requests, FREE_PLAN.requests)} requests, {part(Math.round(gbs), FREE_PLAN.duration)} GB-s; in
      brackets, of the free plan's day.
    </p>
  );
};

const EndsChart: FC<{ chart: Overview["chart"] }> = ({ chart }) => {
  const [isDrawn, setDrawn] = useState(true);
  const all = chart.ended.reduce((a, b) => a + b, 0) + chart.failed.reduce((a, b) => a + b, 0);
  if (all === 0) return <p class="muted">No job has ended in this time.</p>;
  return isDrawn ? <Chart view={VIEW} result={chart} load={loadChart} onFailure={() => setDrawn(false)} /> : null;
};

export const Failures: FC<{ overview: Overview }> = ({ overview: { groups } }) => (
  <Section id="failures" title="Failures">
    {groups.length === 0 ? (
      <p class="muted">None.</p>
    ) : (
      <Scroll label="Table of failures">
        <Table class="jobs" heads={["Reason", "Kind", "Jobs"]}>
          {groups.map(({ kind, reason, count: n }) => (
            <tr key={`${kind} ${reason}`}>
              <th scope="row">
                <a href={filterLink({ kind, reason, state: "failed" })}>{reason || "no reason given"}</a>
              </th>
              <td>{kind}</td>
              <td>{n.toLocaleString()}</td>
            </tr>
          ))}
        </Table>
      </Scroll>
    )}
  </Section>
);

const STATES = {
  sleeping: "asleep",
  answer: "waiting for an answer",
  job: "waiting for another job or a callback",
  failing: "failing, and tried again",
  blocked: "blocked by changed code",
  worker: "taken by no worker",
};

export const WaitingJobs: FC<{ overview: Overview }> = ({ overview: { waits, waits_complete, at } }) => (
  <Section id="waiting" title="Waiting">
    {waits.length === 0 && <p class="muted">No job is known to wait.</p>}
    <ul class="entries">
      {waits.map(({ kind, state, n, since }) => (
        <li key={`${kind} ${state}`}>
          <span>
            <a href={filterLink({ kind, state })}>
              {n} of {kind}
            </a>{" "}
            {STATES[state]}, the oldest for {lengthOf(at - since)}
          </span>
        </li>
      ))}
    </ul>
    {!waits_complete && <p class="muted">There are more; only a limited number is known by name.</p>}
  </Section>
);

const Before: FC<{ n: number | undefined }> = ({ n = 0 }) => <span class="muted">({n.toLocaleString()})</span>;

export const Kinds: FC<{ overview: Overview; onDone(): void }> = ({ overview, onDone }) => (
  <Section id="kinds" title="Kinds">
    <p class="muted">In brackets: the same time {overview.span === "week" ? "a week" : "a day"} before.</p>
    <Scroll label="Table of kinds">
      <Table
        class="jobs"
        heads={[
          "Kind",
          "Started",
          "Complete",
          "Failed",
          "Took",
          "Slowest",
          <span key="control" class="muted">
            Control
          </span>,
        ]}
      >
        {overview.kinds.map(({ kind, started = 0, complete = 0, failed = 0, cancelled = 0, ms = 0, before }) => {
          const slowest = overview.slowest.find((each) => each.kind === kind);
          const isPaused = overview.kinds_paused.includes(kind);
          return (
            <tr key={kind}>
              <th scope="row">
                {kind}
                {isPaused && <span class="doing muted">paused</span>}
              </th>
              <td>
                {started} <Before n={before.started} />
              </td>
              <td>
                {complete} <Before n={before.complete} />
              </td>
              <td>
                {failed > 0 ? <a href={filterLink({ kind, state: "failed" })}>{failed}</a> : 0}{" "}
                <Before n={before.failed} />
              </td>
              <td>{complete + failed + cancelled > 0 ? lengthOf(ms / (complete + failed + cancelled)) : "–"}</td>
              <td>{slowest ? <a href={jobLink(slowest.job)}>{lengthOf(slowest.ms)}</a> : "–"}</td>
              <td>
                <Act
                  action={{ do: isPaused ? "resume" : "pause", of: { kind } }}
                  words={isPaused ? "Resume" : "Pause"}
                  onDone={onDone}
                  key={String(isPaused)}
                />
              </td>
            </tr>
          );
        })}
      </Table>
    </Scroll>
  </Section>
);

export const Workers: FC<{ overview: Overview }> = ({ overview: { workers, at } }) => {
  const here = workers.filter((worker) => isHere(worker, at));
  // If no worker is present, the last ones are shown.
  const visibleWorkers = here.length > 0 ? here : workers.slice(0, 3);
  return (
    <Section id="workers" title="Workers">
      <ul class="entries">
        {visibleWorkers.map((worker) => (
          <li key={worker.worker}>
            <span>
              <code>{worker.worker.slice(0, 8)}</code> of {worker.group}: {count(worker.slots.running, "job")} under
              way, up to {worker.slots.most} of a kind, {worker.slots.waiting} waiting;{" "}
              {worker.connected ? "" : "not connected to the Resonate server; "}
              {worker.isRunner && worker.slots.running === 0 ? "asleep until the next job; " : ""}last report{" "}
              {lengthOf(at - worker.at)} ago; versions{" "}
              {Object.entries(worker.kinds)
                .map(([kind, version]) => `${kind} ${version}`)
                .join(", ")}
            </span>
          </li>
        ))}
      </ul>
    </Section>
  );
};

export const Callers: FC<{ overview: Overview; onDone(): void }> = ({
  overview: { callers, settings, paused },
  onDone,
}) => (
  <Section id="callers" title="Callers today">
    <p class="muted">UTC; up to a minute behind.</p>
    {callers.length === 0 && (
      <p class="muted">No caller is known: none has started a job today, or callers are not authenticated.</p>
    )}
    <ul class="entries">
      {callers.map(({ key, label = key, started, running, bytes, failing, rows }) => {
        const isBlocked = settings.blocked.includes(label);
        const isPausedCaller = paused.callers.includes(key);
        return (
          <li key={`${key} ${isBlocked} ${isPausedCaller}`}>
            <span>
              <strong>{label}</strong>: {count(started, "job")} started, {running > 1_000 ? "over 1,000" : running}{" "}
              under way, {megabytes(bytes)}, {count(rows, "row")} written
              {failing > 0 && `, ${count(failing, "web hook")} failing`}
            </span>
            <span class="actions">
              <Act
                action={{ do: isPausedCaller ? "resume" : "pause", of: { caller: key } }}
                words={isPausedCaller ? "Resume" : "Pause"}
                onDone={onDone}
              />{" "}
              <Act
                action={{ do: isBlocked ? "unblock" : "block", caller: label }}
                words={isBlocked ? "Unblock" : "Block"}
                onDone={onDone}
              />
            </span>
          </li>
        );
      })}
    </ul>
  </Section>
);
