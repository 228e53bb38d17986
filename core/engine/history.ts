/** The history of one run of a job, as saved to a file: all that is needed to repeat the run. */
import type { PromiseRecord, PromiseState } from "../resonate/connection/protocol.ts";
import type { Run } from "./state.ts";

export interface History {
  id: string;
  jobName: string;
  kind: string;
  version: number | undefined;
  seed: string;
  args: unknown;
  /** The number of the run, and the state that earlier runs handed to it; absent for the first. */
  run?: Pick<Run, "n" | "before">;
  /** Milliseconds since the epoch. */
  startedAt: number;
  deadline: number;
  /** The state of the job when it was saved; `rejected_timedout` also if its function ended because of the deadline. */
  state: PromiseState;
  /** The job's result or error if it is complete or failed, or the arguments of the next run. */
  end?: HistoryEnd;
  records: PromiseRecord[];
  /** The promises that the job awaited besides its own records: other jobs by their names, callbacks by their ids. */
  awaitedPromises: Record<string, PromiseRecord>;
}

/** An error has no message if fields are redacted. */
export type HistoryEnd = { value?: unknown } | { next: unknown } | { error: { message?: string } };
