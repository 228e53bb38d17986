/** The viewer's jobs, live, with a search. */
import { type FC, render, useEffect, useState } from "hono/jsx/dom";
import { Schedules } from "./jobs/schedules.tsx";
import { StoredData } from "./jobs/stored-data.tsx";
import { JobTable } from "./jobs/table.tsx";
import { useJobs } from "./jobs/use-jobs.ts";
import { Page, Trouble, useAbout } from "./lib/components.tsx";
import { SignIn } from "./lib/sign-in.tsx";
import { Subscribers, useSubscribers } from "./lib/subscribers.tsx";

const STATUSES = ["running", "complete", "failed", "cancelled", "timed_out"];

const Jobs: FC = () => {
  const about = useAbout();
  const [search, setSearch] = useState("");
  const [status, setStatus] = useState("");
  const [pages, setPages] = useState(1);
  const [reads, setReads] = useState(0);
  const { jobs, storedSize, hasMore, ...outcome } = useJobs({ status, pages, reads });
  const { schedules, subscriptions, listeners, refresh } = useSubscribers();
  useEffect(() => {
    if (about) document.title = `Jobs · ${about.title}`;
  }, [about]);
  const words = search.toLowerCase().split(/\s+/);
  const matches = jobs?.filter(({ job_name, kind, labels = [], doing = "" }) => {
    const text = `${job_name} ${kind} ${labels.join(" ")} ${doing}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  return (
    <Page about={about}>
      <h1>Jobs</h1>
      <Trouble reads={outcome}>
        <SignIn about={about} />
      </Trouble>
      {matches && outcome.refusal?.status !== 401 && (
        <>
          <Filters search={search} onSearch={setSearch} status={status} onStatus={setStatus} />
          {matches.length > 0 ? (
            <JobTable jobs={matches} />
          ) : (
            <p class="muted">{jobs?.length === 0 ? "No jobs yet." : "None of the jobs read so far matches."}</p>
          )}
          {hasMore && (
            <button type="button" onClick={() => setPages(pages + 1)}>
              Read older jobs
            </button>
          )}
          <Schedules schedules={schedules} onEnd={refresh} />
          <Subscribers
            title="Who is notified of your jobs"
            subscriptions={subscriptions}
            listeners={listeners}
            onEnd={refresh}
          />
          <StoredData size={storedSize} onChange={() => setReads(reads + 1)} />
        </>
      )}
    </Page>
  );
};

interface FilterProps {
  search: string;
  onSearch(text: string): void;
  status: string;
  onStatus(status: string): void;
}

const Filters: FC<FilterProps> = ({ search, onSearch, status, onStatus }) => (
  <search class="filters">
    <label>
      Search
      <input
        type="search"
        value={search}
        onInput={(event: Event) => onSearch((event.target as HTMLInputElement).value)}
      />
    </label>
    <label>
      State
      <select value={status} onChange={(event: Event) => onStatus((event.target as HTMLSelectElement).value)}>
        <option value="">any</option>
        {STATUSES.map((each) => (
          <option key={each} value={each}>
            {each.replace("_", " ")}
          </option>
        ))}
      </select>
    </label>
  </search>
);

render(<Jobs />, document.getElementById("page") as HTMLElement);
