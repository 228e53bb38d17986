/** Tells operators that a job has been started. `job` is its promise id without the namespace. */
export type ReportStart = (kind: string, job: string) => unknown;

/** How often a start of each kind is reported, in milliseconds. */
const EVERY = 60_000;

/** Reports one start of each kind once in a while, which is enough to see whether workers take that kind. */
export function seldom(tell: ReportStart): ReportStart {
  const told = new Map<string, number>();
  return (kind, job) => {
    if (Date.now() - (told.get(kind) ?? 0) < EVERY) return undefined;
    told.set(kind, Date.now());
    return tell(kind, job);
  };
}
