/** Tells operators of a job that has been started: its kind, and its promise id without the namespace. */
export type TellStart = (kind: string, job: string) => unknown;

/** How often a start of one kind is told, in milliseconds. */
const EVERY = 60_000;

/** Tells one start of a kind in a while, by which it is seen whether workers take that kind. */
export function seldom(tell: TellStart): TellStart {
  const told = new Map<string, number>();
  return (kind, job) => {
    if (Date.now() - (told.get(kind) ?? 0) < EVERY) return undefined;
    told.set(kind, Date.now());
    return tell(kind, job);
  };
}
