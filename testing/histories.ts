/** Runs the present code over the histories of real jobs, to check that it could continue them. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Implementation, nextArgs } from "../core/author/implement.ts";
import { Execution } from "../core/engine/execution.ts";
import type { History } from "../core/engine/history.ts";
import { Journal } from "../core/engine/journal.ts";
import { type Lease, LeaseLost, type Runnable } from "../core/engine/runtime.ts";
import type { PromiseRecord } from "../core/store/connection/protocol.ts";
import { isOutput, runId } from "../core/store/ids.ts";
import { silent, uncounted } from "./simulation/simulated-job.ts";

const END = "the history ends here";

/**
 * Runs durable functions over the histories in a folder, as `durable-mcp-edge histories save` wrote them. Nothing beyond the end
 * of a history is executed. Resolves with the number of histories that are of the functions' kinds.
 *
 * @throws {Error} naming each history that the present code does not fit, or that it ends differently
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
  const { id, jobName, version = job.version, seed, args, run, startedAt, deadline, end, records, awaited } = history;
  const code = versionOf(version);
  if (!code) return `the code has no version ${version} any more`;
  const journal = new Journal();
  for (const [i, record] of records.entries()) journal.add(record, Number(/\d+$/.exec(record.id)?.[0]) || i + 1);
  const over = async () => Promise.reject(new LeaseLost(END));
  const known = new Map([...Object.entries(awaited), ...records.map((each) => [each.id, each] as const)]);
  const get = async (of: string): Promise<PromiseRecord> => known.get(of) ?? pending(of);
  const lease: Lease = {
    ...{ id, run: runId(id, run?.n ?? 1), version: 1 },
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
    beforeAttempt: over,
    limit: over,
    ...(job.errors && { errors: job.errors }),
    ...(job.budget && { budget: job.budget }),
    ...(job.events && { events: job.events }),
  };
  const outcome = await new Execution(code as Runnable, args, journal, lease, runtime).run().catch((error: unknown) => {
    if (error instanceof LeaseLost && error.message === END) return undefined;
    throw error;
  });
  if (outcome?.kind === "blocked") return outcome.reason;
  if (outcome?.kind === "failed" && (end || (outcome.error as Error)?.name === "NondeterminismError"))
    return `it fails: ${(outcome.error as Error)?.message}`;
  const ends =
    outcome?.kind === "complete"
      ? { value: outcome.value }
      : outcome?.kind === "continued"
        ? { next: outcome.args }
        : undefined;
  if (!end || !ends || JSON.stringify(ends) === JSON.stringify(end)) return undefined;
  return `it ${told(ends, "returns", "goes on with")}, and ${told(end, "returned", "went on with")}`;
}

const told = (end: NonNullable<History["end"]>, returned: string, wentOn: string): string =>
  "next" in end ? `${wentOn} ${JSON.stringify(end.next)}` : `${returned} ${JSON.stringify(end.value)}`;

const pending = (id: string): PromiseRecord => {
  return { id, state: "pending", param: {}, value: {}, tags: {}, timeoutAt: Number.MAX_SAFE_INTEGER, createdAt: 0 };
};
