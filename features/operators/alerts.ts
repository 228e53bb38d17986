/** The rules for alerts to operators. A rule has the name of its paragraph in docs/operations.md. */
import {
  type Alert,
  type CallerUsage,
  formatMismatch,
  JOB_FORMAT_VERSION,
  type Overview,
} from "../../core/jobs/index.ts";
import { FREE_PLAN } from "../../core/resonate/index.ts";

/** The input of the rules: the last hour, and the current state. */
interface AlertInput {
  now: number;
  kinds: Overview["kinds"];
  waits: Overview["waits"];
  workers: Overview["workers"];
  /** The kinds with a job that has waited for a worker for over a minute, with their worker groups. */
  untaken: readonly { kind: string; group: string }[];
  /** Callers whose storage is almost full or whose web hooks fail. */
  callers: readonly CallerUsage[];
  /** The versions of the kinds that the edge serves. */
  versions: Readonly<Record<string, number>>;
  /** How many bytes a caller may have; 0 for any number. */
  maxBytes: number;
  resonate: Overview["resonate"] | "not called";
  /** Whether the account may be on the free plan, which refuses usage above its limits. */
  isFree: boolean;
}

/** A worker that is silent for longer counts as gone: it reports at least every 20 seconds. */
const MAX_SILENCE_MS = 30_000;

/** The share of its limit from which on a storage counts as almost full. */
export const ALMOST_FULL_SHARE = 0.9;

/** The share of the free plan's daily limits from which on these count as nearly used. */
const NEARLY_USED_SHARE = 0.7;

/** Failures count as many from this number on, if they are more than this share of the ended jobs. */
const MIN_FAILURES = 5;
const MAX_FAILED_SHARE = 0.2;

const list = (names: readonly string[]) =>
  names.slice(0, 3).join(", ") + (names.length > 3 ? ` and ${names.length - 3} more` : "");
const GB = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;
/** The live workers except runners, which are woken for each job and deployed with the edge. */
const elsewhere = ({ workers, now }: AlertInput) =>
  workers.filter(({ at, isRunner }) => !isRunner && at > now - MAX_SILENCE_MS);
const alive = (input: AlertInput) => [
  ...elsewhere(input).filter(({ connected }) => connected),
  ...input.workers.filter(({ isRunner }) => isRunner),
];

/** The rules. Each returns what is wrong, or undefined. */
export const RULES = {
  "jobs-fail": ({ kinds }: AlertInput) => {
    const bad = kinds.filter(
      ({ failed = 0, complete = 0 }) => failed >= MIN_FAILURES && failed / (failed + complete) > MAX_FAILED_SHARE,
    );
    return bad.length > 0
      ? `many jobs fail: ${list(bad.map(({ kind, failed }) => `${failed} of ${kind}`))}`
      : undefined;
  },
  "no-worker": (input: AlertInput) => {
    const [newest] = input.workers;
    if (!newest || alive(input).length > 0) return undefined;
    return `no worker takes jobs; the last one was heard of at ${new Date(newest.at).toISOString()}`;
  },
  "no-server": ({ resonate }: AlertInput) => (resonate ? undefined : "the Resonate server does not answer"),
  "server-full": ({ resonate }: AlertInput) => {
    if (typeof resonate !== "object" || !resonate.maxBytes) return undefined;
    const { size = 0, maxBytes } = resonate;
    return size > ALMOST_FULL_SHARE * maxBytes
      ? `the Resonate server has stored ${GB(size)} of ${GB(maxBytes)}`
      : undefined;
  },
  "plan-used": ({ resonate, isFree }: AlertInput) => {
    if (!isFree || typeof resonate !== "object" || !resonate.today) return undefined;
    const { written, requests } = resonate.today;
    const part = Math.max(written / FREE_PLAN.rows, requests / FREE_PLAN.requests);
    return part > NEARLY_USED_SHARE ? `${Math.round(100 * part)} % of the free plan's day are used` : undefined;
  },
  "slots-taken": (input: AlertInput) => {
    const waiting = alive(input).reduce((sum, { slots }) => sum + slots.waiting, 0);
    return waiting > 0 ? `${waiting} jobs wait for a slot` : undefined;
  },
  "not-taken": (input: AlertInput) => {
    const here = alive(input);
    if (input.workers.length > 0 && here.length === 0) return undefined;
    // A worker whose jobs wait for a slot does not ask for others.
    const isBusy = (kind: string) => here.some(({ kinds, slots }) => kind in kinds && slots.waiting > 0);
    const left = input.untaken.filter(({ kind }) => !isBusy(kind));
    return left.length > 0
      ? `no worker takes ${list(left.map(({ kind, group }) => `${kind} (worker group ${group})`))}`
      : undefined;
  },
  "jobs-blocked": ({ waits }: AlertInput) => {
    const blocked = waits.filter(({ state }) => state === "blocked");
    return blocked.length > 0 ? `blocked: ${list(blocked.map(({ kind, n }) => `${n} of ${kind}`))}` : undefined;
  },
  "old-worker": (input: AlertInput) => {
    const isOld = ([kind, version]: [string, number]) => version < (input.versions[kind] ?? 0);
    const old = elsewhere(input).flatMap(({ kinds }) =>
      Object.entries(kinds)
        .filter(isOld)
        .map(([kind]) => kind),
    );
    return old.length > 0 ? `a worker runs an earlier version of ${list([...new Set(old)])}` : undefined;
  },
  "mixed-versions": (input: AlertInput) => {
    // A worker that does not start for this reason counts as well.
    const other = elsewhere(input).find(({ form }) => form !== JOB_FORMAT_VERSION);
    return (
      other && formatMismatch(`the worker ${other.worker.slice(0, 8)}`, other.form, "this edge", JOB_FORMAT_VERSION)
    );
  },
  "storage-full": ({ callers, maxBytes }: AlertInput) => {
    const full = maxBytes > 0 ? callers.filter(({ bytes }) => bytes > ALMOST_FULL_SHARE * maxBytes) : [];
    return full.length > 0
      ? `almost full: the storage of ${list(full.map(({ label, key }) => label ?? key))}`
      : undefined;
  },
  "deliveries-fail": ({ callers }: AlertInput) => {
    const failing = callers.filter((caller) => caller.failing > 0);
    return failing.length > 0 ? `web hooks fail of ${list(failing.map(({ label, key }) => label ?? key))}` : undefined;
  },
} satisfies Record<string, (input: AlertInput) => string | undefined>;

/** How long something must be wrong before it is an alert, in milliseconds. */
export const MIN_DURATION_MS: Partial<Record<string, number>> = {
  "no-worker": 30_000,
  "no-server": 30_000,
  "slots-taken": 300_000,
};

export const alertsOf = (input: AlertInput): Alert[] =>
  (Object.keys(RULES) as (keyof typeof RULES)[]).flatMap((name) => {
    const says = RULES[name](input);
    return says === undefined ? [] : [{ name, says }];
  });
