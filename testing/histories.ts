/** Runs the present code over the histories of real jobs, to check that it could continue them. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Implementation, nextArgs, storedError } from "../core/author/index.ts";
import {
  Execution,
  type ExecutionEnd,
  type History,
  type HistoryEnd,
  Journal,
  type Lease,
  LeaseLost,
  type Runnable,
} from "../core/engine/index.ts";
import { isOutput, type PromiseRecord, runId } from "../core/resonate/index.ts";
import { noLog, noMetrics } from "./simulation/simulated-job.ts";

/** The function asks for something that the history does not have. */
class EndOfHistory extends LeaseLost {
  constructor() {
    super("the history ends here", { reason: "ended" });
  }
}

/**
 * Runs durable functions over the histories in a folder, as `durable-mcp-edge histories save` wrote them. Nothing beyond the end
 * of a history is executed. Resolves with the number of histories that are of the functions' kinds.
 *
 * @throws {Error} naming each history that the present code does not fit, or for which it has another outcome,
 *   or in which it fails although the job had not
 *
 * @example const test = async () => replayHistories("histories", [waitForSiteRun]);
 */
export async function replayHistories(
  folder: string,
  functions: readonly Implementation[],
  { env = {} }: { env?: unknown } = {},
): Promise<number> {
  const problems: string[] = [];
  let count = 0;
  for (const file of (await readdir(folder)).filter((name) => name.endsWith(".json")).sort()) {
    const history = JSON.parse(await readFile(join(folder, file), "utf8")) as History;
    const implementation = functions.find(({ job }) => job.kind === history.kind);
    if (!implementation) continue;
    count += 1;
    const problem = await problemOf(history, implementation, env);
    if (problem !== undefined) problems.push(`${join(folder, file)}: ${problem}`);
  }
  if (count === 0) throw new Error(`${folder} holds no history of these functions`);
  if (problems.length > 0) throw new Error(problems.join("\n"));
  return count;
}

async function problemOf(history: History, implementation: Implementation, env: unknown): Promise<string | undefined> {
  const { state, end, version = implementation.job.version } = history;
  const code = implementation.versionOf(version);
  if (!code) return `the code has no version ${version}`;
  const outcome = await run(code as Runnable, history, implementation, env);
  if (outcome?.kind === "blocked") return outcome.reason;
  const outcomeEnd = outcome && endOf(outcome);
  if (!outcomeEnd) return undefined;
  if (end)
    return isSame(outcomeEnd, end)
      ? undefined
      : `it ${describe(outcomeEnd, PRESENT_TENSE)}, and ${describe(end, PAST_TENSE)}`;
  if (outcome.kind !== "failed" || mayFail(outcome.error, state)) return undefined;
  return `it ${describe(outcomeEnd, PRESENT_TENSE)}, and the job had not`;
}

/** The outcome of a function over a history; undefined if the history does not have it. */
async function run(
  code: Runnable,
  history: History,
  { job }: Implementation,
  env: unknown,
): Promise<ExecutionEnd | undefined> {
  const { jobName, seed, args, startedAt, deadline, records } = history;
  const journal = new Journal();
  for (const [i, record] of records.entries()) journal.add(record, Number(/\d+$/.exec(record.id)?.[0]) || i + 1);
  const runtime = {
    jobName,
    startedAt,
    deadline,
    seed,
    env,
    log: noLog,
    metrics: noMetrics,
    ...(history.run && { run: history.run }),
    nextArgs: (next: unknown) => nextArgs(job, next),
    signal: new AbortController().signal,
    start: endHistory,
    cancel: endHistory,
    endChild: endHistory,
    promiseOf: (name: string) => name,
    callbackUrl: (of: string) => `https://edge.invalid/callbacks/${encodeURIComponent(of)}`,
    steps: [{ attempt: endHistory }],
    errors: job.errors,
    budget: job.budget,
    events: job.events,
  };
  return new Execution(code, args, journal, leaseOn(history), runtime).run().catch((error: unknown) => {
    if (error instanceof EndOfHistory) return undefined;
    throw error;
  });
}

const endHistory = async (): Promise<never> => Promise.reject(new EndOfHistory());

/** A lease on the job of a history, which reads what the history has, and ends it at the first change. */
function leaseOn({ id, run, awaitedPromises, records }: History): Lease {
  const promises = new Map([...Object.entries(awaitedPromises), ...records.map((each) => [each.id, each] as const)]);
  const get = async (promiseId: string): Promise<PromiseRecord> => promises.get(promiseId) ?? pending(promiseId);
  return {
    id,
    run: runId(id, run?.n ?? 1),
    taskId: id,
    version: 1,
    // The outputs of calls that the function gave up have no record.
    create: async (promiseId) => (isOutput(promiseId, id) ? pending(promiseId) : endHistory()),
    get,
    watch: get,
    suspend: endHistory,
    onNews: () => {},
  };
}

function endOf(outcome: ExecutionEnd): HistoryEnd | undefined {
  switch (outcome.kind) {
    case "complete":
      return { value: outcome.value };
    case "continued":
      return { next: outcome.args };
    case "failed":
      return { error: { message: storedError(outcome.error).message } };
    default:
      return undefined;
  }
}

/** Whether the function of a job without an end may fail: that of a cancelled job does, and a deadline may have come since. */
function mayFail(error: unknown, state: History["state"]): boolean {
  const name = (error as Error | undefined)?.name;
  if (name === "NondeterminismError") return false;
  return state.startsWith("rejected_") || name === "DeadlineExceeded" || name === "JobCancelled";
}

function isSame(outcome: HistoryEnd, end: HistoryEnd): boolean {
  if (!("error" in outcome && "error" in end)) return JSON.stringify(outcome) === JSON.stringify(end);
  return end.error.message === undefined || withoutLine(outcome.error.message) === withoutLine(end.error.message);
}

/** A message without the line of a fault, which any edit of the file moves. */
const withoutLine = (message = ""): string => message.replace(/ \(at [^()]*:\d+\)$/, "");

const PRESENT_TENSE = { value: "returns", next: "continues with", error: "fails" };
const PAST_TENSE = { value: "returned", next: "continued with", error: "failed" };

function describe(end: HistoryEnd, { value, next, error }: typeof PAST_TENSE): string {
  if ("error" in end) return end.error.message === undefined ? error : `${error}: ${end.error.message}`;
  return "next" in end ? `${next} ${JSON.stringify(end.next)}` : `${value} ${JSON.stringify(end.value)}`;
}

const pending = (id: string): PromiseRecord => ({
  id,
  state: "pending",
  param: {},
  value: {},
  tags: {},
  timeoutAt: Number.MAX_SAFE_INTEGER,
  createdAt: 0,
});
