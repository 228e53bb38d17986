/** Runs the present code over the histories of real jobs, to check that it could continue them. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Implementation, nextArgs } from "../core/author/implement.ts";
import { Execution } from "../core/engine/execution.ts";
import type { History, HistoryEnd } from "../core/engine/history.ts";
import type { Lease } from "../core/engine/job-lease.ts";
import { Journal } from "../core/engine/journal.ts";
import { type ExecutionEnd, LeaseLost, type Runnable } from "../core/engine/runtime.ts";
import type { PromiseRecord } from "../core/resonate/connection/protocol.ts";
import { isOutput, runId } from "../core/resonate/ids.ts";
import { storedError } from "../worker/execution/ending.ts";
import { silent, uncounted } from "./simulation/simulated-job.ts";

/** The function asks for something that the history does not hold. */
class HistoryOver extends LeaseLost {
  constructor() {
    super("the history ends here");
  }
}

/**
 * Runs durable functions over the histories in a folder, as `durable-mcp-edge histories save` wrote them. Nothing beyond the end
 * of a history is executed. Resolves with the number of histories that are of the functions' kinds.
 *
 * @throws {Error} naming each history that the present code does not fit, or that it ends differently,
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

async function problemOf(
  history: History,
  { job, versionOf }: Implementation,
  env: unknown,
): Promise<string | undefined> {
  const {
    id,
    jobName,
    version = job.version,
    seed,
    args,
    run,
    startedAt,
    deadline,
    state,
    end,
    records,
    awaited,
  } = history;
  const code = versionOf(version);
  if (!code) return `the code has no version ${version} any more`;
  const journal = new Journal();
  for (const [i, record] of records.entries()) journal.add(record, Number(/\d+$/.exec(record.id)?.[0]) || i + 1);
  const over = async () => Promise.reject(new HistoryOver());
  const known = new Map([...Object.entries(awaited), ...records.map((each) => [each.id, each] as const)]);
  const get = async (of: string): Promise<PromiseRecord> => known.get(of) ?? pending(of);
  const lease: Lease = {
    ...{ id, run: runId(id, run?.n ?? 1), taskId: id, version: 1 },
    // The outputs of calls that the function gave up have no record.
    create: async (of) => (isOutput(of, id) ? pending(of) : over()),
    get,
    watch: get,
    suspend: over,
    onNews: () => {},
  };
  const runtime = {
    ...{ jobName, startedAt, deadline, seed, env, log: silent, metrics: uncounted },
    ...(run && { run }),
    nextArgs: (next: unknown) => nextArgs(job, next),
    signal: new AbortController().signal,
    start: over,
    cancel: over,
    promiseOf: (name: string) => name,
    callbackUrl: (of: string) => `https://edge.invalid/callbacks/${encodeURIComponent(of)}`,
    steps: [{ attempt: over }],
    ...{ errors: job.errors, budget: job.budget, events: job.events },
  };
  const outcome = await new Execution(code as Runnable, args, journal, lease, runtime).run().catch((error: unknown) => {
    if (error instanceof HistoryOver) return undefined;
    throw error;
  });
  if (outcome?.kind === "blocked") return outcome.reason;
  const now = outcome && endIn(outcome);
  if (!now) return undefined;
  if (end) return isSame(now, end) ? undefined : `it ${told(now, PRESENT)}, and ${told(end, PAST)}`;
  if (outcome.kind !== "failed" || mayFail(outcome.error, state)) return undefined;
  return `it ${told(now, PRESENT)}, and the job had not`;
}

function endIn(outcome: ExecutionEnd): HistoryEnd | undefined {
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

function isSame(now: HistoryEnd, end: HistoryEnd): boolean {
  if (!("error" in now && "error" in end)) return JSON.stringify(now) === JSON.stringify(end);
  return end.error.message === undefined || withoutLine(now.error.message) === withoutLine(end.error.message);
}

/** A message without the line of a fault, which any edit of the file moves. */
const withoutLine = (message = ""): string => message.replace(/ \(at [^()]*:\d+\)$/, "");

const PRESENT = { value: "returns", next: "goes on with", error: "fails" };
const PAST = { value: "returned", next: "went on with", error: "failed" };

function told(end: HistoryEnd, { value, next, error }: typeof PAST): string {
  if ("error" in end) return end.error.message === undefined ? error : `${error}: ${end.error.message}`;
  return "next" in end ? `${next} ${JSON.stringify(end.next)}` : `${value} ${JSON.stringify(end.value)}`;
}

const pending = (id: string): PromiseRecord => {
  return { id, state: "pending", param: {}, value: {}, tags: {}, timeoutAt: Number.MAX_SAFE_INTEGER, createdAt: 0 };
};
