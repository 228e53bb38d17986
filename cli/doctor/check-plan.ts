/** How near a deployment is to what its plan has: by what its Resonate object has counted since it woke. */
import { OperatorClient } from "../backup/operator.ts";
import { type Finding, failed, ok, warning } from "./finding.ts";

/** A day's, of the free plan, duration in GB-s, and what an object may keep, in bytes: docs/deploy.md names the source. */
const FREE = { rows: 100_000, requests: 100_000, duration: 13_000, size: 5e9 };
/** What an object takes that is awake all day, in GB-s. */
const ALL_DAY = 10_800;
const MOST = 10e9;
/** From which part of a limit on it is told. */
const NEAR = 0.7;

const DAY = 86_400_000;
/** An object that has been awake for a shorter time, in milliseconds, tells nothing of a day. */
const LONG_ENOUGH = 600_000;

/** What the object says of itself: counts since it woke, for how many milliseconds it has been awake, its bytes. */
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
    return [failed("plan", (error as Error).message, fix)];
  }
}

/** What is to be said of a deployment's use. */
export function judge({ requests, alarms, rows, awake, size }: Usage): Finding[] {
  return [judgeSize(size), judgeDay({ requests: requests + alarms, rows: rows.written, awake })];
}

function judgeSize(size: number): Finding {
  const check = "Resonate's size";
  const said = `${(size / 1e6).toFixed(size < 1e8 ? 1 : 0)} MB of the 10 GB of an object`;
  const fix = "Move to a server of your own (npm run move): nothing is started beyond it.";
  if (size > NEAR * MOST) return warning(check, said, fix);
  if (size > NEAR * FREE.size) return warning(check, `${said}; the free plan has 5 GB`, fix);
  return ok(check, said);
}

function judgeDay({ requests, rows, awake }: { requests: number; rows: number; awake: number }): Finding {
  const check = "plan";
  const minutes = Math.max(1, Math.round(awake / 60_000));
  const said = `${rows} rows written and ${requests} requests in the ${minutes} min since its Resonate server woke`;
  if (awake < LONG_ENOUGH) return ok(check, `${said}: it sleeps when nothing is asked, and tells no day of it yet`);
  const [dayRows, dayRequests] = [rows, requests].map((count) => Math.round((count / awake) * DAY)) as [number, number];
  const part = Math.max(dayRows / FREE.rows, dayRequests / FREE.requests);
  const day =
    `${said}: ${dayRows} and ${dayRequests} a day, ${Math.round(part * 100)} % of what the free plan has; it has not slept, ` +
    `as while a worker stays connected, and takes ${ALL_DAY} of the ${FREE.duration} GB-s a day so`;
  if (part <= NEAR) return ok(check, day);
  const fix = "On the free plan calls fail beyond it, until midnight UTC. docs/deploy.md says what the paid one costs.";
  return warning(check, day, fix);
}
