/** `operate`: the functions of the page `/operate` in the command line. */
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { Action, ActionState, AuditEntry, Filter, FoundJobs, Overview, Preview } from "../../core/jobs/index.ts";
import { flag, option, optionOr, usageOf, WrongArguments } from "../arguments.ts";
import { OperatorClient } from "../backup/operator-client.ts";
import { DATA, stackRecordIn } from "../launcher/data-directory.ts";
import { print } from "../terminal/print.ts";

const OPTIONS = {
  state: { type: "string" },
  kind: { type: "string" },
  reason: { type: "string" },
  caller: { type: "string" },
  span: { type: "string" },
  after: { type: "string" },
  all: { type: "boolean" },
  values: { type: "boolean" },
  apply: { type: "string" },
  "from-start": { type: "boolean" },
  json: flag("print JSON"),
  url: option(
    "URL",
    "the deployment's edge, with an operator's token in OPERATOR_TOKEN (default: the stack on this machine)",
  ),
  data: optionOr(DATA, "DIR", `the state directory of that stack (default ${DATA})`),
} as const;

export const usage = usageOf(
  "WHAT [options]",
  `  overview                what happened in the last hour (--span day, --span week), and what is wrong
  jobs FILTER             the jobs that failed, or wait
  job JOB                 one job; with --values its arguments and result, which the audit log notes
  retry JOB … | FILTER    has jobs tried again, from their last good step, or with --from-start from the start
  cancel JOB … | FILTER   cancels jobs, which clean up; of a FILTER both only count the jobs, and name some
  retry, cancel --apply N do it to exactly the jobs of the count with this number
  pause, resume           JOB …, --kind KIND, --caller NAME, or --all: workers take none of them, or take them again
  stop-starts, allow-starts
  block NAME, unblock NAME    a caller, by its name in logs
  audit-log               who did what, as lines of JSON, oldest first; --after N continues after entry N

A FILTER is --state (failed, blocked, failing, answer, sleeping, job, worker; default failed), --kind, --reason (as the list shows
it, of jobs that failed or are blocked) and --caller (its name in logs).`,
  OPTIONS,
);

type Ask = <T>(path: string, query?: object, body?: Action | Filter) => Promise<T>;

/** @throws {WrongArguments} if neither an option nor a local stack names an edge */
function askAt(url: string | undefined, data: string): Ask {
  const edge = url ?? stackRecordIn(data)?.url;
  if (edge === undefined)
    throw new WrongArguments(`Name the edge with --url: ${data} has no record of a stack on this machine.`);
  const client = new OperatorClient(new URL(edge).origin, process.env.OPERATOR_TOKEN ?? "");
  return (path, query, body) =>
    client.ask(body ? "POST" : "GET", `/operate/${path}`, query, body && JSON.stringify(body));
}

interface Command {
  ask: Ask;
  what: string;
  names: string[];
  filter: Filter;
  values: ReturnType<typeof read>["values"];
}

const read = (args: string[]) => parseArgs({ args, allowPositionals: true, options: OPTIONS });

export async function run(args: string[]): Promise<void> {
  const { values, positionals } = read(args);
  const [what = "overview", ...names] = positionals;
  const { state, kind, reason, caller } = values;
  const filter = JSON.parse(JSON.stringify({ state, kind, reason, caller })) as Filter;
  const answer = await answerTo({ ask: askAt(values.url, values.data), what, names, filter, values });
  if (answer !== undefined) print(values.json ? JSON.stringify(answer.json, undefined, 2) : answer.text);
}

interface Answer {
  json: unknown;
  text: string;
}

async function answerTo(command: Command): Promise<Answer | undefined> {
  const { ask, what, names, filter, values } = command;
  switch (what) {
    case "overview":
      return overviewOf(await ask<Overview>("overview", { span: values.span }));
    case "jobs":
      return listOf(await ask<FoundJobs>("jobs", filter));
    case "job": {
      const job = await ask<object>("job", { job: names[0], ...(values.values && { values: "1" }) });
      return { json: job, text: JSON.stringify(job, undefined, 2) };
    }
    case "audit-log":
      return printAuditLog(ask, Number(values.after ?? 0));
    case "retry":
    case "cancel":
      return onJobs(command, what);
    default:
      return outcomeOf(await runAction(ask, actionOf(command)));
  }
}

/** @throws {WrongArguments} if the arguments name no action */
function actionOf({ what, names, values }: Command): Action {
  const [name] = names;
  switch (what) {
    case "pause":
    case "resume": {
      const { all, kind, caller } = values;
      if (all) return { do: what, of: { all: true } };
      if (kind !== undefined) return { do: what, of: { kind } };
      if (caller !== undefined) return { do: what, of: { caller } };
      if (names.length > 0) return { do: what, of: { jobs: names } };
      throw new WrongArguments("Say what: jobs, --kind, --caller or --all.");
    }
    case "stop-starts":
    case "allow-starts":
      return { do: what };
    case "block":
    case "unblock":
      if (name === undefined) throw new WrongArguments("Name the caller.");
      return { do: what, caller: name };
    default:
      throw new WrongArguments(`There is no "${what}".`);
  }
}

async function onJobs({ ask, names, filter, values }: Command, what: "retry" | "cancel"): Promise<Answer> {
  const { apply } = values;
  const hasFilter = Object.keys(filter).length > 0;
  if ([names.length > 0, hasFilter, apply !== undefined].filter(Boolean).length > 1)
    throw new WrongArguments(`${what} takes either jobs, a filter, or --apply with the number of a count.`);
  const from = what === "retry" && { from: values["from-start"] ? ("start" as const) : ("last" as const) };
  const targets = apply !== undefined ? { preview: Number(apply) } : { jobs: names };
  if (apply !== undefined || names.length > 0)
    return outcomeOf(await runAction(ask, { do: what, ...targets, ...from } as Action));
  const preview = await ask<Preview>("preview", {}, filter);
  const { text } = listOf(preview);
  const options = values["from-start"] ? " --from-start" : "";
  return { json: preview, text: `${text}\nNothing was done. Do it: ${what}${options} --apply ${preview.preview}` };
}

async function runAction(ask: Ask, action: Action): Promise<ActionState> {
  let state = await ask<ActionState>("act", {}, action);
  while (!state.is_over) {
    await sleep(1_000);
    state = await ask<ActionState>("action", { n: state.n });
  }
  return state;
}

function outcomeOf(state: ActionState): Answer {
  const lines = Object.entries(state.outcomes).map(([job, outcome]) => `${job}: ${outcome}`);
  if (state.total > lines.length) lines.push(`${state.done} of ${state.total} are done.`);
  return { json: state, text: lines.join("\n") || "It is done." };
}

function listOf(listing: FoundJobs): Answer {
  const lines = listing.jobs.map(({ job, state, says }) => `  ${state.padEnd(8)} ${job}: ${says}`);
  return { json: listing, text: [`${listing.count} jobs`, ...lines].join("\n") };
}

function overviewOf(overview: Overview): Answer {
  const { alerts, kinds, groups, waits, workers, callers, resonate } = overview;
  const ago = `a ${overview.span === "week" ? "week" : "day"} before`;
  const lines = [
    ...alerts.map(({ name, says }) => `! ${says} (docs/operations.md#${name})`),
    ...serverOf(resonate),
    ...(workers.length === 0 ? ["No worker has reported."] : []),
    ...kinds.map(
      ({ kind, started = 0, complete = 0, failed = 0, before: b }) =>
        `${kind}: ${started} started (${b.started ?? 0} ${ago}), ${complete} complete (${b.complete ?? 0}), ${failed} failed (${b.failed ?? 0})`,
    ),
    ...groups.map(({ kind, reason, count }) => `  ${count} of ${kind}: ${reason}`),
    ...waits.map(({ kind, state, n }) => `  ${n} of ${kind}: ${state}`),
    ...workers.map(
      ({ worker, at, slots, isRunner }) =>
        `worker ${worker.slice(0, 8)}: ${slots.running} of ${slots.most} slots${isRunner && slots.running === 0 ? ", asleep until the next job" : ""}, last report ${new Date(at).toISOString()}`,
    ),
    ...callers.map(
      ({ key, label = key, started, running, bytes, rows }) =>
        `caller ${label}: ${started} started today, ${running} under way, ${bytes} bytes, ${rows} rows written`,
    ),
  ];
  return { json: overview, text: lines.join("\n") };
}

function serverOf(resonate: Overview["resonate"]): string[] {
  if (!resonate) return ["The Resonate server does not answer."];
  const { release, ms, size, maxBytes, today } = resonate;
  const MB = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
  const storage = size === undefined ? "only its database knows its size" : `${MB(size)} stored`;
  return [
    `The Resonate server (${release}) answers in ${ms} ms; ${storage}${maxBytes === undefined ? "" : ` of ${MB(maxBytes)}`}.`,
    ...(today ? [`Today: ${today.written} rows written, ${today.requests} requests.`] : []),
  ];
}

async function printAuditLog(ask: Ask, from: number): Promise<undefined> {
  for (let after = from; ;) {
    const { entries } = await ask<{ entries: AuditEntry[] }>("audit-log", { after, limit: 1_000 });
    for (const entry of entries) print(JSON.stringify(entry));
    const last = entries.at(-1);
    if (!last) return undefined;
    after = last.n;
  }
}
