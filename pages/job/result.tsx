import { type FC, useState } from "hono/jsx/dom";
import { type Parts, partsIn } from "../../core/resonate/index.ts";
import { columnsOf } from "../chart/columns.ts";
import { Chart } from "../chart/frame.tsx";
import { loadChart } from "../chart/load.ts";
import { dateIn, lengthOf, Scroll, Section, Table, Time, useNow } from "../lib/components.tsx";
import type { JobInfo } from "../lib/server.ts";
import { Tree } from "./tree.tsx";

/** The largest number of rows in the table beneath a chart. The CSV has all of them. */
const MAX_TABLE_ROWS = 400;

/** The result of a job, in the view of its definition or else as a tree. */
export const Result: FC<{ job: JobInfo }> = ({ job }) => {
  const { view, result } = job;
  const [isDrawn, setDrawn] = useState(true);
  if (view?.as === "countdown") return <Countdown job={job} until={view.until} />;
  const parts = partsIn(result);
  if (parts) return <Beginning {...parts} />;
  const columns = view?.as === "chart" ? columnsOf(view, result) : undefined;
  return (
    <Section id="result" title="Result">
      {view?.as === "chart" && columns ? (
        <>
          {isDrawn ? (
            <Chart view={view} result={result} load={loadChart} onFailure={() => setDrawn(false)} />
          ) : (
            <p class="muted">This browser cannot draw the chart: here is what it would show.</p>
          )}
          <details open={!isDrawn}>
            <summary>As a table</summary>
            <Scroll label="Table">
              <Table
                heads={[
                  columns.x[0]?.length === 10 ? "Day" : "Time",
                  ...columns.columns.map(({ label, unit }) => (
                    <>
                      {label} {unit !== undefined && <span class="muted">{unit}</span>}
                    </>
                  )),
                ]}
              >
                {columns.x.slice(0, MAX_TABLE_ROWS).map((moment, i) => (
                  <tr key={moment}>
                    <th scope="row">{moment}</th>
                    {columns.columns.map(({ label, values }) => (
                      <td key={label}>{values[i] ?? "–"}</td>
                    ))}
                  </tr>
                ))}
              </Table>
            </Scroll>
            {columns.x.length > MAX_TABLE_ROWS && (
              <p class="muted">{columns.x.length - MAX_TABLE_ROWS} more lines are in the CSV.</p>
            )}
          </details>
        </>
      ) : (
        <Tree value={result} />
      )}
    </Section>
  );
};

/** The beginning of a result that is stored in parts. */
const Beginning: FC<Parts> = ({ text, characters }) => (
  <Section id="result" title="Result">
    <p class="muted">
      It has {characters} characters as JSON text, of which these are the first. Download JSON has all of it; a client
      reads it in parts: with probe_status, or as a resource.
    </p>
    <span class="leaf">{text} …</span>
  </Section>
);

const Countdown: FC<{ job: JobInfo; until: string }> = ({ job, until }) => {
  const now = useNow();
  const due = dateIn(job.args, until);
  if (due === undefined) return <Tree value={job.result} />;
  const began = Date.parse(job.started_at);
  const remainingMs = job.status === "running" ? Math.max(0, due - now) : 0;
  return (
    <section class="countdown" aria-label="Time left">
      <p class="large">
        {job.status === "running" ? lengthOf(remainingMs) : job.status === "complete" ? "Time is up" : "Stopped"}
      </p>
      {job.status === "running" && (
        <progress aria-label="Time passed" value={Math.max(0, now - began)} max={Math.max(1, due - began)} />
      )}
      <p class="muted">
        {job.status === "complete" ? "It was due" : "Due"} <Time at={due} />
      </p>
    </section>
  );
};
