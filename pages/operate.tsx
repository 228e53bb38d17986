/** The operators' page: the state of the deployment, and their actions. */
import { type FC, render, useEffect, useState } from "hono/jsx/dom";
import { Page, Scroll, Table, Time, Trouble, useAbout, useAction, useReads } from "./lib/components.tsx";
import { TokenForm } from "./lib/token-form.tsx";
import { Bulk } from "./operate/acting.tsx";
import {
  overview as ask,
  trail as askTrail,
  type Filter,
  type Overview,
  type Span,
  signIn,
  type TrailEntry,
} from "./operate/ask.ts";
import { Job } from "./operate/one-job.tsx";
import { Alerts, Callers, Failures, HeldBack, Kinds, Now, Waiting, Workers } from "./operate/overview.tsx";

/** How often the overview is read while the page is visible, in milliseconds. */
const EVERY = 10_000;

const SPANS: Record<Span, string> = { hour: "Last hour", day: "Last day", week: "Last week" };

/** The view that the address selects: `#job=NAME`, `#jobs=FILTER`, `#trail`, or the overview, also for half a link. */
function asked(): { job?: string; filter?: Filter; trail?: boolean } {
  const [, name, value = ""] = /^#(job|jobs|trail)(?:=(.*))?$/.exec(location.hash) ?? [];
  try {
    if (name === "job") return { job: decodeURIComponent(value) };
    if (name === "jobs") return { filter: JSON.parse(decodeURIComponent(value)) };
  } catch {}
  return { trail: name === "trail" };
}

const Operate: FC = () => {
  const about = useAbout();
  const [at, setAt] = useState(asked());
  const [span, setSpan] = useState<Span>("hour");
  const [overview, setOverview] = useState<(Overview & { who: string }) | undefined>(undefined);
  const [reads, setReads] = useState(0);
  useEffect(() => {
    const follow = () => setAt(asked());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  const read = async (over: AbortSignal) => {
    const found = await ask(span);
    if (!over.aborted) setOverview(found);
  };
  const outcome = useReads(read, EVERY, [span, reads]);
  const again = () => setReads(reads + 1);
  const { job, filter, trail } = at;
  const isFirst = job === undefined && filter === undefined && !trail;
  return (
    <Page about={about}>
      <nav class="actions" aria-label="Operate">
        <a href="#overview" aria-current={isFirst ? "page" : undefined}>
          Overview
        </a>
        <a href="#trail" aria-current={trail ? "page" : undefined}>
          Audit trail
        </a>
        {overview && <span class="muted">You are {overview.who}.</span>}
      </nav>
      <Trouble reads={outcome}>
        <TokenForm label="Operator's token" signIn={signIn} onDone={again} />
      </Trouble>
      {!outcome.refused && overview && isFirst && (
        <>
          <h1>Operate</h1>
          <Alerts overview={overview} />
          <p class="filters">
            <label>
              Span
              <select onChange={(event: Event) => setSpan((event.target as HTMLSelectElement).value as Span)}>
                {Object.entries(SPANS).map(([name, words]) => (
                  <option key={name} value={name}>
                    {words}
                  </option>
                ))}
              </select>
            </label>
          </p>
          <Now overview={overview} onDone={again} />
          <HeldBack overview={overview} onDone={again} />
          <Failures overview={overview} />
          <Waiting overview={overview} />
          <Kinds overview={overview} onDone={again} />
          <Workers overview={overview} />
          <Callers overview={overview} onDone={again} />
        </>
      )}
      {!outcome.refused && overview && job !== undefined && <Job name={job} key={job} />}
      {!outcome.refused && overview && filter && <Bulk filter={filter} onDone={again} key={JSON.stringify(filter)} />}
      {!outcome.refused && overview && trail && <Trail />}
    </Page>
  );
};

/** The details of an entry of the audit trail. `of` with a number refers to another entry. */
const inWords = (about: object): string =>
  Object.entries(about)
    .map(([name, value]) => {
      if (name === "of" && typeof value === "number") return `of #${value}`;
      if (typeof value !== "object" || value === null) return `${name} ${value}`;
      return Array.isArray(value) ? `${name} ${value.join(", ")}` : inWords(value);
    })
    .join(", ");

const Trail: FC = () => {
  const [entries, setEntries] = useState<TrailEntry[]>([]);
  const { attempt, isBusy, problem } = useAction();
  const read = (before?: number) =>
    attempt(async () => {
      const more = await askTrail(before);
      setEntries([...entries, ...more.entries]);
    });
  useEffect(() => void read(), []);
  return (
    <>
      <h1>Audit trail</h1>
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
