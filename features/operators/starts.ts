import { type Remote, within } from "../../core/resonate/index.ts";
import type { OperateCalls } from "./calls.ts";

/** Reports to operators that a job has been started. `job` is its promise id without the namespace. */
export type ReportStart = (kind: string, job: string) => unknown;

/** How often a start of each kind is reported, in milliseconds. */
const INTERVAL_MS = 60_000;

/** How long a start waits until operators know of it, in milliseconds. */
const REPORT_TIMEOUT_MS = 2_000;

/** Reports one start of each kind once in a while, which is enough to see whether workers take that kind. */
export function oncePerInterval(report: ReportStart): ReportStart {
  const reportedAt = new Map<string, number>();
  return (kind, job) => {
    if (Date.now() - (reportedAt.get(kind) ?? 0) < INTERVAL_MS) return undefined;
    reportedAt.set(kind, Date.now());
    return report(kind, job);
  };
}

/** Reports starts to the operators' object. A start does not wait long for it. */
export const startReporter = (operators: () => Remote<Pick<OperateCalls, "started">>): ReportStart =>
  oncePerInterval((kind, job) =>
    within(
      operators()
        .started(kind, job)
        .catch(() => {}),
      REPORT_TIMEOUT_MS,
    ),
  );
