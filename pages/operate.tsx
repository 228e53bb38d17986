/** The operators' page: the state of the deployment, and their actions. */
import { type FC, render, useEffect, useState } from "hono/jsx/dom";
import { Page, Scroll, Table, Time, Trouble, useAbout, useAction, useReads } from "./lib/components.tsx";
import { TokenForm } from "./lib/token-form.tsx";
import { Bulk } from "./operate/actions.tsx";
import { Job } from "./operate/one-job.tsx";
import { Alerts, Callers, Failures, Kinds, Now, PausedAndBlocked, WaitingJobs, Workers } from "./operate/overview.tsx";
import {
  type AuditEntry,
  type Filter,
  type Overview,
  auditLog as readAuditLog,
  overview as readOverview,
  type Span,
  signIn,
} from "./operate/requests.ts";

/** How often the overview is read while the page is visible. */
const POLL_INTERVAL_MS = 10_000;

const SPANS: Record<Span, string> = { hour: "Last hour", day: "Last day", week: "Last week" };

/** The view that the address selects: `#job=NAME`, `#jobs=FILTER`, `#audit-log`, or the overview, also for half a link. */
function viewOf(hash: string): { job?: string; filter?: Filter; isAuditLog?: boolean } {
  const [, name, value = ""] = /^#(job|jobs|audit-log)(?:=(.*))?$/.exec(hash) ?? [];
  try {
    if (name === "job") return { job: decodeURIComponent(value) };
    if (name === "jobs") return { filter: JSON.parse(decodeURIComponent(value)) };
  } catch {}
  return { isAuditLog: name === "audit-log" };
}

const Operate: FC = () => {
  const about = useAbout();
  const [view, setView] = useState(viewOf(location.hash));
  const [span, setSpan] = useState<Span>("hour");
  const [overview, setOverview] = useState<(Overview & { who: string }) | undefined>(undefined);
  const [reads, setReads] = useState(0);
  useEffect(() => {
    const follow = () => setView(viewOf(location.hash));
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  const read = async (end: AbortSignal) => {
    const answer = await readOverview(span);
    if (!end.aborted) setOverview(answer);
  };
  const outcome = useReads(read, POLL_INTERVAL_MS, [span, reads]);
  const refresh = () => setReads(reads + 1);
  const { job, filter, isAuditLog } = view;
  const isOverview = job === undefined && filter === undefined && !isAuditLog;
  return (
    <Page about={about}>
      <nav class="actions" aria-label="Operate">
        <a href="#overview" aria-current={isOverview ? "page" : undefined}>
          Overview
        </a>
        <a href="#audit-log" aria-current={isAuditLog ? "page" : undefined}>
          Audit log
        </a>
        {overview && <span class="muted">You are {overview.who}.</span>}
      </nav>
      <Trouble reads={outcome}>
        <TokenForm label="Operator's token" signIn={signIn} onDone={refresh} />
      </Trouble>
      {!outcome.refusal && overview && (
        <>
          {isOverview && <OverviewPage overview={overview} onSpan={setSpan} onDone={refresh} />}
          {job !== undefined && <Job name={job} key={job} />}
          {filter && <Bulk filter={filter} onDone={refresh} key={JSON.stringify(filter)} />}
          {isAuditLog && <AuditLog />}
        </>
      )}
    </Page>
  );
};

interface OverviewPageProps {
  overview: Overview;
  onSpan(span: Span): void;
  onDone(): void;
}

const OverviewPage: FC<OverviewPageProps> = ({ overview, onSpan, onDone }) => (
  <>
    <h1>Operate</h1>
    <Alerts overview={overview} />
    <p class="filters">
      <label>
        Span
        <select onChange={(event: Event) => onSpan((event.target as HTMLSelectElement).value as Span)}>
          {Object.entries(SPANS).map(([name, words]) => (
            <option key={name} value={name}>
              {words}
            </option>
          ))}
        </select>
      </label>
    </p>
    <Now overview={overview} onDone={onDone} />
    <PausedAndBlocked overview={overview} onDone={onDone} />
    <Failures overview={overview} />
    <WaitingJobs overview={overview} />
    <Kinds overview={overview} onDone={onDone} />
    <Workers overview={overview} />
    <Callers overview={overview} onDone={onDone} />
  </>
);

/** The details of an entry of the audit log. `of` with a number refers to another entry. */
const inWords = (details: object): string =>
  Object.entries(details)
    .map(([name, value]) => {
      if (name === "of" && typeof value === "number") return `of #${value}`;
      if (typeof value !== "object" || value === null) return `${name} ${value}`;
      return Array.isArray(value) ? `${name} ${value.join(", ")}` : inWords(value);
    })
    .join(", ");

const AuditLog: FC = () => {
  const [entries, setEntries] = useState<AuditEntry[]>([]);
  const { attempt, isBusy, problem } = useAction();
  const read = (before?: number) =>
    attempt(async () => {
      const { entries: older } = await readAuditLog(before);
      setEntries([...entries, ...older]);
    });
  useEffect(() => void read(), []);
  return (
    <>
      <h1>Audit log</h1>
      {problem}
      <Scroll label="Entries">
        <Table class="jobs" heads={["What", "Who", "When"]}>
          {entries.map(({ n, at, who, what, about }) => (
            <tr key={n}>
              <th scope="row">
                {what} <span class="muted">#{n}</span>
                <span class="doing muted">{inWords(about)}</span>
              </th>
              <td>{who}</td>
              <td>
                <Time at={at} />
              </td>
            </tr>
          ))}
        </Table>
      </Scroll>
      {(entries.at(-1)?.n ?? 1) > 1 && (
        <button type="button" disabled={isBusy} onClick={() => read(entries.at(-1)?.n)}>
          Read older entries
        </button>
      )}
    </>
  );
};

render(<Operate />, document.getElementById("page") as HTMLElement);
