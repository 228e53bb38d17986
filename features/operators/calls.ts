/** The requests and answers of the object through which operators see and act. */

import type {
  Action,
  ActionState,
  AuditEntry,
  CallerUsage,
  Filter,
  FoundJobs,
  Overview,
  Preview,
  RefusedRequest,
  Settings,
  Span,
  WorkerReport,
} from "../../core/jobs/index.ts";
import type { Row } from "../../core/resonate/index.ts";

/** The tools and methods by which callers end, answer and remove jobs: operators find these calls in the audit log. */
export const AUDITED_METHODS: readonly string[] =
  "cancel_job answer_question answer_for_user forget_jobs tasks/cancel tasks/update".split(" ");

/** A page of the audit log: the entries before `before`, newest first; or those after `after`, oldest first. */
export interface AuditPage {
  before?: number | undefined;
  after?: number | undefined;
  limit?: number;
}

/** The calls to the object, by name. */
export interface OperateCalls {
  report(report: WorkerReport): void;
  usage(usage: CallerUsage): void;
  /** Notes that a job was started, by its promise id without the namespace. Comes once in a while for each kind. */
  started(kind: string, job: string): void;
  settings(): Settings;
  note(who: string, what: string, about: object): void;
  /** Notes a command of an operator, which makes several requests, once in the audit log. */
  command(who: string, what: string, about: object): void;
  /** Notes a call of a caller in the audit log, and whether it was refused; of its parameters only the jobs and the question. */
  noteCall(caller: string, what: string, params: object, isRefused?: boolean): void;
  overview(span: Span): Promise<Overview>;
  jobs(filter: Filter): Promise<FoundJobs | RefusedRequest>;
  preview(filter: Filter): Promise<Preview | RefusedRequest>;
  /** The reports about a job, and its caller's name in the log, if it has one. */
  about(job: string): Promise<{ failure: Row | undefined; wait: Row | undefined; caller?: string }>;
  act(who: string, action: Action): Promise<ActionState | RefusedRequest>;
  action(n: number): ActionState;
  auditLog(page: AuditPage): AuditEntry[];
}
