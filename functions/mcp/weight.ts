/** What a message costs: how many jobs it touches, or how much work it is besides. */
import { jobNames } from "../../core/tools/arguments.ts";

/** Requests to the Resonate server that a name, or else the call, takes: more than a look at a job. */
const OF_A_NAME: Record<string, number> = { cancel_job: 4 };
const OF_A_CALL: Record<string, number> = { list_jobs: 10 };

/** A whole number of 1 or more, whatever is in the message. */
export function weightOf(method: string, params: Record<string, unknown>): number {
  if (method === "subscriptions/listen") return Math.max(1, taskIdsIn(params.notifications));
  if (method !== "tools/call" || typeof params.name !== "string") return 1;
  const { name } = params;
  if (Object.hasOwn(OF_A_CALL, name)) return OF_A_CALL[name] ?? 1;
  const each = Object.hasOwn(OF_A_NAME, name) ? (OF_A_NAME[name] ?? 1) : 1;
  return each * namesIn(params.arguments);
}

/** How many jobs a call names; what will be refused for its arguments names none. */
function namesIn(args: unknown): number {
  if (typeof args !== "object" || args === null || !Object.hasOwn(args, "job_names")) return 1;
  return jobNames.safeParse((args as { job_names: unknown }).job_names).data?.length ?? 1;
}

function taskIdsIn(notifications: unknown): number {
  if (typeof notifications !== "object" || notifications === null || !("taskIds" in notifications)) return 1;
  const { taskIds } = notifications;
  return Array.isArray(taskIds) ? Math.min(taskIds.length, 100) : 1;
}
