/** The output of a chaos run. */
import type { PlannedFault } from "../plan.ts";
import type { Outcome } from "../run.ts";
import { undisturbed } from "./reconcile.ts";

const SHOWN = 20;

export function report(outcome: Outcome): string {
  const { violations } = outcome;
  const rows = [...Map.groupBy(outcome.faults, nameOf)].sort(([a], [b]) => a.localeCompare(b));
  return [
    "Faults",
    table(rows.map(([fault, list]) => ({ fault, injected: list.length, ...consequences(fault, list, outcome) }))),
    "Jobs",
    table(jobRows(outcome)),
    ...figures(outcome),
    violations.length === 0
      ? "Every acknowledged job ended once, as expected. Nothing was lost, invented, changed or requested twice without a reason."
      : `${violations.length} violations:`,
    ...violations.slice(0, SHOWN).map(({ rule, job, detail }) => `  ${rule}: ${job ? `${job}: ` : ""}${detail}`),
  ].join("\n");
}

function nameOf(fault: PlannedFault): string {
  if (fault.target !== "upstream") return `${fault.how} ${fault.target}`;
  const { kind } = fault.fault;
  return `archive ${kind === "status" ? fault.fault.status : kind}`;
}

/** How long processes were down, and how many archive requests failed. */
function consequences(name: string, faults: PlannedFault[], { disruptions, requests }: Outcome) {
  const [first] = faults;
  if (first?.target === "upstream") {
    const met = requests.filter(({ fault }) => fault === first.fault.kind).length;
    return { "requests met": first.fault.kind === "status" ? "" : met, "longest away (s)": "" };
  }
  const away = disruptions
    .filter(({ what }) => what === name || name.endsWith("everything"))
    .map(({ from, to }) => (to - from) / 1_000);
  return { "requests met": "", "longest away (s)": Math.max(0, ...away).toFixed(1) };
}

function jobRows({ jobs, log }: Outcome) {
  const acknowledged = new Set([...log.wanted.values()].map(({ acknowledged }) => acknowledged));
  return [...Map.groupBy(jobs.values(), ({ func }) => func)].map(([kind, list]) => ({
    kind,
    jobs: list.length,
    acknowledged: list.filter(({ name }) => acknowledged.has(name)).length,
    complete: list.filter(({ state }) => state === "resolved").length,
    failed: list.filter(({ state }) => state === "rejected").length,
    cancelled: list.filter(({ state }) => state === "rejected_canceled").length,
  }));
}

function figures({
  jobs,
  requests,
  disruptions,
  log,
  mostRunning,
  sleepersFired,
  settled,
  allowedDelay,
}: Outcome): string[] {
  const timers = [...jobs.values()].filter(({ func, state }) => func === "timer" && state === "resolved");
  const away = disruptions.filter(({ process }) => process !== "edge");
  const late = timers.map(({ args, settledAt = 0 }) => {
    const due = Date.parse(args.fires_at);
    return { all: settledAt - due, undisturbed: undisturbed(due, settledAt, away) };
  });
  const most = (values: number[]) => (Math.max(0, ...values) / 1_000).toFixed(1);
  const met = requests.filter(({ fault }) => fault !== undefined).length;
  const stalls = disruptions.filter(({ what }) => what === "stall").length;
  const failures = [...log.failures].sort(([, a], [, b]) => b - a);
  return [
    ...(sleepersFired > 0 ? [`${sleepersFired} of the timers that slept behind it fired meanwhile.`] : []),
    `At most ${mostRunning} jobs at a time; the last ended ${(settled / 1_000).toFixed(1)} s after the last fault.`,
    `Timers were at most ${most(late.map(({ all }) => all))} s late, ${most(late.map(({ undisturbed }) => undisturbed))} s of it while nothing was disrupted (allowed: ${allowedDelay / 1_000} s).`,
    `The archive was asked ${requests.length} times; ${met} requests met a fault.`,
    ...(stalls > 0 ? [`The machine gave this run no turn ${stalls} times, which counts as a disruption.`] : []),
    `Clients made ${log.calls} calls, of which these failed:`,
    ...failures.slice(0, SHOWN).map(([reason, times]) => `  ${times} × ${reason.slice(0, 160)}`),
  ];
}

function table(rows: Record<string, string | number>[]): string {
  const heads = Object.keys(rows[0] ?? {});
  const lines = [heads, ...rows.map((row) => heads.map((head) => String(row[head])))];
  const widths = heads.map((_, i) => Math.max(...lines.map((line) => line[i]?.length ?? 0)));
  return lines.map((line) => `  ${line.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join("  ")}`).join("\n");
}
