/** What a request costs its caller, by the jobs that it touches and the work that it causes. */
import { jobNames } from "../../core/tools/arguments.ts";

/** The cost of a name or of a whole call, in requests to the Resonate server, where it is more than a look at a job. */
const OF_A_NAME: ReadonlyMap<unknown, number> = new Map([
  ["cancel_job", 4],
  ["forget_jobs", 2],
]);
const OF_A_CALL: ReadonlyMap<unknown, number> = new Map([
  ["list_jobs", 10],
  ["schedule_job", 6],
]);

/** The cost of a `tools/call`: 1 or more. */
export function weightOfCall({ name, arguments: args }: Record<string, unknown>): number {
  return OF_A_CALL.get(name) ?? (OF_A_NAME.get(name) ?? 1) * (typeof name === "string" ? namesIn(args) : 1);
}

/** The number of jobs that a call names; 1 where its arguments will be refused. */
function namesIn(args: unknown): number {
  if (typeof args !== "object" || args === null || !Object.hasOwn(args, "job_names")) return 1;
  return jobNames.safeParse((args as { job_names: unknown }).job_names).data?.length ?? 1;
}

/** How many characters of a body cost as much as one request: they are read, checked, and may be stored. */
const CHARACTERS = 20_000;

/** The cost of a body by its size alone. */
export const weightOfSize = (size: number): number => Math.ceil(size / CHARACTERS);

/** The cost of a subscription: the number of its tasks, up to the most that it may name. */
export function weightOfSubscription({ notifications }: Record<string, unknown>): number {
  if (typeof notifications !== "object" || notifications === null || !("taskIds" in notifications)) return 1;
  const { taskIds } = notifications;
  return Array.isArray(taskIds) ? Math.max(1, Math.min(taskIds.length, 100)) : 1;
}
