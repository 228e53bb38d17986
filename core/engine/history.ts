/** The history of one run of a job, as saved to a file: all that is needed to repeat the run. */
import type { PromiseRecord } from "../store/connection/protocol.ts";

import type { Run } from "./state.ts";

export interface History {
  id: string;
  jobName: string;
  kind: string;
  version: number | undefined;
  seed: string | undefined;
  args: unknown;
  /** The number of the run, and the state that earlier runs handed to it; absent for the first. */
  run?: Pick<Run, "n" | "before">;
  /** Milliseconds since the epoch. */
  startedAt: number;
  deadline: number;
  /** The job's result if it is complete, or the arguments of the next run. */
  end?: { value?: unknown } | { next: unknown };
  records: PromiseRecord[];
  /** The promises that the job awaited besides its own records: other jobs by their names, callbacks by their ids. */
  awaited: Record<string, PromiseRecord>;
}
