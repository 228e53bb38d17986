/** The requests and answers of the object through which operators see and act. */

import type {
  Action,
  ActionState,
  CallerFigure,
  Filter,
  Overview,
  Settings,
  Span,
  TrailEntry,
} from "../../core/jobs/operators-api.ts";
import type { WorkerReport } from "../../core/jobs/worker-report.ts";
import type { Row } from "../../core/resonate/object-storage.ts";

/** The tools and methods by which callers end, answer and remove jobs: operators find these calls in the trail. */
export const TRAILED: readonly string[] = [
  ...["cancel_job", "answer_question", "answer_for_user", "forget_jobs", "tasks/cancel", "tasks/update"],
];

/** A page of the trail: the entries before `before`, newest first; or those after `after`, oldest first. */
export interface TrailPage {
  before?: number | undefined;
  after?: number | undefined;
  limit?: number;
}

/** The calls to the object, by name. */
export interface OperateCalls {
  report(report: WorkerReport): void;
  figure(figure: CallerFigure): void;
  /** Notes that a job was started, by its promise id without the namespace. Comes once in a while for each kind. */
  started(kind: string, job: string): void;
  settings(): Settings;
  note(who: string, what: string, about: object): void;
  /** Notes a command of an operator, which makes several requests, once in the trail. */
  command(who: string, what: string, about: object): void;
  /** Notes a call of a caller in the trail; of its parameters only the jobs and the question. */
  heard(caller: string, what: string, params: object): void;
  overview(span: Span): Promise<Overview>;
  jobs(filter: Filter): Promise<{ jobs: Row[]; count: number }>;
  /** The reports about a job, and its caller's name in the log, if it has one. */
  about(job: string): Promise<{ failure: Row | undefined; wait: Row | undefined; caller?: string }>;
  act(who: string, action: Action): Promise<ActionState>;
  action(n: number): ActionState;
  trail(page: TrailPage): TrailEntry[];
}
