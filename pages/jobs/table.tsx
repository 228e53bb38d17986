import type { FC } from "hono/jsx/dom";
import { jobPath, lengthOf, StatusChip, Table, useNow } from "../lib/components.tsx";
import type { ListedJob } from "../lib/server.ts";

export const JobTable: FC<{ jobs: readonly ListedJob[] }> = ({ jobs }) => {
  const now = useNow();
  return (
    <Table class="jobs" heads={["Job", "State", "Kind", "Age"]}>
      {jobs.map((job) => (
        <tr key={job.job_name}>
          <th scope="row">
            <a href={jobPath(job.job_name)}>{job.job_name}</a>
            {job.labels && <span class="doing muted">{job.labels.join(" · ")}</span>}
            {job.cleanup === "running" && <span class="doing muted">cleans up</span>}
            {job.doing !== undefined && <span class="doing muted">{job.doing}</span>}
          </th>
          <td>
            <StatusChip status={job.status} asks={(job.waiting_for ?? []).length > 0} />
          </td>
          <td>{job.kind}</td>
          <td>
            <time dateTime={job.started_at} title={new Date(job.started_at).toLocaleString()}>
              {lengthOf(now - Date.parse(job.started_at))}
            </time>
          </td>
        </tr>
      ))}
    </Table>
  );
};
