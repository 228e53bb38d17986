/** The history of a run of a job, as it is saved to a file: what is needed to repeat the run. */
import type { PromiseRecord } from "../store/connection/protocol.ts";

import type { Run } from "./state.ts";

export interface History {
  id: string;
  jobName: string;
  kind: string;
  version: number | undefined;
  seed: string | undefined;
  args: unknown;
  /** Which of the job's runs it is, and what those before have left to it; absent for the first. */
  run?: Pick<Run, "n" | "before">;
  /** Milliseconds since the epoch. */
  startedAt: number;
  deadline: number;
  /** The job's result where it is complete, or the arguments of the run that follows. */
  end?: { value?: unknown } | { next: unknown };
  records: PromiseRecord[];
  /** What the job awaited beside its own records: other jobs by their names, callbacks by their ids. */
  awaited: Record<string, PromiseRecord>;
}
