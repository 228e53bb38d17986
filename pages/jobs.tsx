/** The viewer's jobs, live, with a search. */
import { type FC, render, useEffect, useState } from "hono/jsx/dom";
import { Kept } from "./jobs/kept.tsx";
import { Schedules } from "./jobs/schedules.tsx";
import { JobTable } from "./jobs/table.tsx";
import { useJobs } from "./jobs/use-jobs.ts";
import { Page, Trouble, useAbout } from "./lib/components.tsx";
import { SignIn } from "./lib/sign-in.tsx";
import { Told, useTold } from "./lib/told.tsx";

const STATUSES = ["running", "complete", "failed", "cancelled", "timed_out"];

const Jobs: FC = () => {
  const about = useAbout();
  const [search, setSearch] = useState("");
  const [status, setStatus] = useState("");
  const [pages, setPages] = useState(1);
  const [reads, setReads] = useState(0);
  const { jobs, stored, hasMore, ...read } = useJobs({ status, pages, reads });
  const { schedules, subscriptions, listeners, refresh } = useTold();
  useEffect(() => {
    if (about) document.title = `Jobs · ${about.title}`;
  }, [about]);
  const words = search.toLowerCase().split(/\s+/);
  const found = jobs?.filter(({ job_name, kind, labels = [], doing = "" }) => {
    const text = `${job_name} ${kind} ${labels.join(" ")} ${doing}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  return (
    <Page about={about}>
      <h1>Jobs</h1>
      <Trouble reads={read}>
        <SignIn about={about} />
      </Trouble>
      {found && read.refused?.status !== 401 && (
        <>
          <search class="filters">
            <label>
              Search
              <input
                type="search"
                value={search}
                onInput={(event: Event) => setSearch((event.target as HTMLInputElement).value)}
              />
            </label>
            <label>
              State
              <select value={status} onChange={(event: Event) => setStatus((event.target as HTMLSelectElement).value)}>
                <option value="">any</option>
                {STATUSES.map((each) => (
                  <option key={each} value={each}>
                    {each.replace("_", " ")}
                  </option>
                ))}
              </select>
            </label>
          </search>
          {found.length > 0 ? (
            <JobTable jobs={found} />
          ) : (
            <p class="muted">{jobs?.length === 0 ? "No jobs yet." : "None of the jobs read so far matches."}</p>
          )}
          {hasMore && (
            <button type="button" onClick={() => setPages(pages + 1)}>
              Read older jobs
            </button>
          )}
          <Schedules schedules={schedules} onEnd={refresh} />
          <Told title="Who is told of your jobs" {...{ subscriptions, listeners }} onEnd={refresh} />
          <Kept stored={stored} onChange={() => setReads(reads + 1)} />
        </>
      )}
    </Page>
  );
};

render(<Jobs />, document.getElementById("page") as HTMLElement);
