/** Compares the final records of the Resonate server, the archive and the clients. */
import { isDeepStrictEqual } from "node:util";
import { splitGeneration, withGeneration } from "../../../core/resonate/ids.ts";
import { monthsOf } from "../../../tools/weather/range.ts";
import type { Requests } from "../../../tools/weather/sample-archive/faults.ts";
import type { Stored } from "../../support/stored.ts";
import { type ClientLog, type Ending, ownOf, type Violation, type Wanted } from "../client-log.ts";
import type { Disruption } from "../faults.ts";
import { monthName } from "../names.ts";
import { monthKey, queryKey, wrongWith } from "./expect.ts";

export interface Evidence {
  log: ClientLog;
  jobs: ReadonlyMap<string, Stored>;
  requests: Requests["log"];
  disruptions: readonly Disruption[];
  /** How late a timer or the notification of a settled job may be without a disruption, in milliseconds. */
  allowedDelay: number;
}

export function reconcile(evidence: Evidence): Violation[] {
  return [
    ...evidence.log.violations,
    ...lostJobs(evidence),
    ...storedJobs(evidence),
    ...timers(evidence),
    ...upstream(evidence),
    ...untold(evidence),
  ];
}

/** Checks that every acknowledged job exists, with the outcome that the clients saw. */
function lostJobs({ log, jobs }: Evidence): Violation[] {
  const violations: Violation[] = [];
  for (const { acknowledged: name, cancel } of log.wanted.values()) {
    if (name !== undefined && !jobs.has(name))
      violations.push({ rule: "lost", job: name, detail: "it does not exist" });
    const cancelled = cancel && jobs.get(cancel.name)?.state === "rejected_canceled";
    if (cancelled !== undefined && cancel?.outcome !== "sent" && cancelled !== (cancel?.outcome === "cancelled")) {
      violations.push({
        rule: "wrong value",
        job: cancel?.name ?? "",
        detail: `its cancellation said ${cancel?.outcome}`,
      });
    }
  }
  for (const [name, told] of log.endings) {
    const stored = jobs.get(name);
    if (stored && !isDeepStrictEqual(told, ownOf(endingOf(stored)))) {
      violations.push({
        rule: "changed",
        job: name,
        detail: `told ${told.status}, stored ${stored.state} or another value`,
      });
    }
  }
  return violations;
}

function endingOf({ state, value }: Stored): Ending {
  if (state === "resolved") return { status: "complete", result: value };
  if (state === "rejected") return { status: "failed", error: value instanceof Error ? value.message : String(value) };
  return { status: state === "rejected_canceled" ? "cancelled" : state };
}

/** Checks that every existing job was requested, and has ended with the expected outcome. */
function storedJobs({ log, jobs, requests }: Evidence): Violation[] {
  const ranges = [...jobs.values()].filter(({ func }) => func === "weather_range");
  const parts = new Set(ranges.flatMap(monthNames));
  // The cancellation of a range also cancels its months, except those that somebody else wants.
  const givenUp = new Set(ranges.filter(({ state }) => state === "rejected_canceled").flatMap(monthNames));
  const unusable = countBy(requests, ({ fault }) => fault === "rubbish");
  return [...jobs.values()].flatMap((job): Violation[] => {
    const { base, generation } = splitGeneration(job.name);
    const wanted = log.wanted.get(base);
    const before = jobs.get(withGeneration(base, generation - 1));
    const violation = (rule: Violation["rule"], detail: string) => [{ rule, job: job.name, detail }];
    if (!wanted && !parts.has(base)) return violation("invented", "nobody asked for it");
    if (generation > 1 && (before?.state ?? "resolved") === "resolved")
      return violation("invented", "the one before is not over");
    if (generation > 1 && wanted && generation > wanted.attempts)
      return violation("invented", "it was not asked for so often");
    if (asksInVain(job, wanted)) return [];
    if (job.state === "rejected_canceled" && !wanted && givenUp.has(base)) return [];
    if (job.state === "pending") return violation("lost", "still running long after everything worked again");
    const wrong = wrongWith(job, wanted, { jobs, unusable });
    return wrong === undefined ? [] : violation("wrong value", wrong);
  });
}

/**
 * Whether a delayed edge started a job after its client had already got the job from another edge. If the job has ended by then,
 * the next generation starts, and asks a client that is gone.
 */
export function asksInVain({ name, state }: Stored, wanted: Wanted | undefined): boolean {
  return state === "pending" && wanted?.planned.kind === "question" && name !== wanted.acknowledged;
}

const monthNames = ({ args }: Stored) => monthsOf(args).map((month) => monthName(month));

/** Checks that timers fire at their acknowledged times, or later only by the length of disruptions. */
function timers({ log, jobs, disruptions, allowedDelay }: Evidence): Violation[] {
  const away = disruptions.filter(({ process }) => process !== "edge"); // the edge does nothing for a timer that is set
  return [...jobs.values()].flatMap((job): Violation[] => {
    if (job.func !== "timer" || job.state !== "resolved" || job.settledAt === undefined) return [];
    const { firesAt, planned, firstSent, lastSent } = log.wanted.get(job.name) ?? {};
    const due = Date.parse(job.args.fires_at);
    const seconds = planned?.kind === "timer" ? planned.args.seconds : 0;
    const [from, to] = [firstSent ?? 0, lastSent ?? 0].map((sent) => sent + seconds * 1_000) as [number, number];
    const violation = (rule: Violation["rule"], detail: string) => [{ rule, job: job.name, detail }];
    if (firesAt !== undefined && firesAt !== job.args.fires_at)
      return violation("changed", `${firesAt} was acknowledged`);
    // A paused edge sets the timer only when it continues.
    if (due < from || due > to + allowedDelay) return violation("wrong value", `set for ${job.args.fires_at}`);
    if (job.settledAt < due) return violation("early", `by ${due - job.settledAt} ms`);
    const late = undisturbed(due, job.settledAt, away);
    return late > allowedDelay ? violation("late", `by ${late} ms in which everything worked`) : [];
  });
}

/**
 * How long after the return of a stopped worker its earlier requests may still arrive, in milliseconds. It starts no requests for
 * a job that another worker has taken.
 */
const UNDER_WAY = 1_000;

/**
 * Checks the requests to the archive. Its answers are stored at once, so a month is requested again after a good answer only if a
 * worker, Resonate or the archive was down in between, once per disruption, and for each generation of its job.
 */
function upstream({ jobs, requests, disruptions }: Evidence): Violation[] {
  const months = [...jobs.values()].filter(({ func }) => func === "weather_data");
  const generations = Map.groupBy(months, ({ args }) => monthKey(args));
  const good = requests.filter(({ fault }) => fault === undefined || fault === "slow");
  return [...Map.groupBy(good, ({ query }) => queryKey(query))].flatMap(([key, asked]): Violation[] => {
    const about = generations.get(key);
    if (!about?.[0]) return [{ rule: "upstream", detail: `asked for ${key}, which no job is about` }];
    const times = asked.map(({ at }) => at);
    const unexplained = repeats(times, disruptions) - (about.length - 1);
    if (unexplained <= 0) return [];
    const last = disruptions.filter(({ from, process }) => from <= (times.at(-1) ?? 0) && process !== "edge");
    const before = last.toSorted((a, b) => a.to - b.to).at(-1);
    const detail =
      `${asked.length} requests that were answered well, ${unexplained} of them for no reason; the later ones came ` +
      `${times.slice(1).map((at) => `${(at - (times[0] ?? 0)) / 1_000} s`)} after the first, and that ` +
      (before ? `${((times[0] ?? 0) - before.to) / 1_000} s after the end of ${before.what}` : "before anything else");
    return [{ rule: "upstream", job: about[0].name, detail }];
  });
}

/** How many of the requests at `times` no disruption explains. */
export function repeats(times: readonly number[], disruptions: readonly Disruption[]): number {
  const unused = disruptions.filter(({ process }) => process !== "edge").sort((a, b) => a.to - b.to);
  return times.slice(1).filter((to, i) => {
    const from = times[i] as number;
    const reason = unused.findIndex((disruption) => {
      const over = disruption.to + (disruption.process === "worker" ? UNDER_WAY : 0);
      return disruption.from <= to && over >= from;
    });
    if (reason >= 0) unused.splice(reason, 1);
    return reason < 0;
  }).length;
}

/** Checks that waiting clients learn of settled jobs. */
function untold({ log, jobs, disruptions, allowedDelay }: Evidence): Violation[] {
  return log.stillRunning.flatMap(({ name, at }): Violation[] => {
    const settledAt = jobs.get(name)?.settledAt ?? at;
    const ms = undisturbed(settledAt, at, disruptions);
    return ms > allowedDelay ? [{ rule: "not told", job: name, detail: `${ms} ms after it had ended` }] : [];
  });
}

/** The undisrupted time between two moments, in milliseconds. */
export function undisturbed(from: number, to: number, disruptions: readonly Disruption[]): number {
  let [sum, reached] = [0, from];
  for (const disruption of disruptions.toSorted((a, b) => a.from - b.from)) {
    sum += Math.max(0, Math.min(disruption.from, to) - reached);
    reached = Math.max(reached, disruption.to);
  }
  return sum + Math.max(0, to - reached);
}

function countBy(
  requests: Requests["log"],
  counts: (request: Requests["log"][number]) => boolean,
): Map<string, number> {
  const numbers = new Map<string, number>();
  for (const request of requests.filter(counts)) {
    const key = queryKey(request.query);
    numbers.set(key, (numbers.get(key) ?? 0) + 1);
  }
  return numbers;
}
