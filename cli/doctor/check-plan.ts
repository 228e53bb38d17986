/** Checks, by the counters of its Resonate object, how close a deployment is to the limits of its plan. */
import { FREE_PLAN, MAX_OBJECT_BYTES } from "../../core/resonate/index.ts";
import { OperatorClient } from "../backup/operator-client.ts";
import { type Finding, findings } from "./finding.ts";

/** The duration of an object that is awake all day, in GB-s. */
const GB_SECONDS_PER_DAY = 10_800;
/** The fraction of a limit at which to warn. */
const WARNING_FRACTION = 0.7;

const DAY_MS = 86_400_000;
/** The shortest time awake that allows an estimate for a day. */
const MIN_AWAKE_MS = 600_000;

/** The object's counters since it woke; `awake` in milliseconds, `size` in bytes. */
interface Usage {
  requests: number;
  alarms: number;
  rows: { written: number };
  awake: number;
  size: number;
}

export async function checkPlan(edge: URL, token: string): Promise<Finding[]> {
  try {
    return judge(await new OperatorClient(edge.origin, token).ask("GET", "usage"));
  } catch (error) {
    const fix = "The token is one of OPERATOR_TOKENS, and RESONATE_PUBLIC is 1.";
    return [findings("plan").failed((error as Error).message, fix)];
  }
}

export function judge({ requests, alarms, rows, awake, size }: Usage): Finding[] {
  return [judgeSize(size), judgeDay({ requests: requests + alarms, rows: rows.written, awake })];
}

function judgeSize(size: number): Finding {
  const { ok, warning } = findings("Resonate's size");
  const text = `${(size / 1e6).toFixed(size < 1e8 ? 1 : 0)} MB of the 10 GB of an object`;
  const fix = "Move to a server of your own (npm run move): nothing is started beyond it.";
  if (size > WARNING_FRACTION * MAX_OBJECT_BYTES) return warning(text, fix);
  if (size > WARNING_FRACTION * FREE_PLAN.size) return warning(`${text}; the free plan has 5 GB`, fix);
  return ok(text);
}

function judgeDay({ requests, rows, awake }: { requests: number; rows: number; awake: number }): Finding {
  const { ok, warning } = findings("plan");
  const minutes = Math.max(1, Math.round(awake / 60_000));
  const counts = `${rows} rows written and ${requests} requests in the ${minutes} min since its Resonate server woke`;
  if (awake < MIN_AWAKE_MS) return ok(`${counts}: too short for an estimate, as it sleeps when no requests arrive`);
  const [dayRows, dayRequests] = [rows, requests].map((count) => Math.round((count / awake) * DAY_MS)) as [
    number,
    number,
  ];
  const part = Math.max(dayRows / FREE_PLAN.rows, dayRequests / FREE_PLAN.requests);
  const day =
    `${counts}: ${dayRows} and ${dayRequests} a day, ${Math.round(part * 100)} % of what the free plan has; it has not slept ` +
    `(a connected worker keeps it awake), which takes ${GB_SECONDS_PER_DAY} of the ${FREE_PLAN.duration} GB-s a day`;
  if (part <= WARNING_FRACTION) return ok(day);
  const fix = "On the free plan calls fail beyond it, until midnight UTC. docs/deploy.md says what the paid one costs.";
  return warning(day, fix);
}
