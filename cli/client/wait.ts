/** `wait JOB...`: ends when the jobs have ended, for shells, CI steps and agents' background commands. */
import { parseArgs } from "node:util";
import { awaitJobs, readJob, WAIT_SECONDS } from "../../client/jobs.ts";
import { option, usageOf, WrongArguments } from "../arguments.ts";
import { print, printError } from "../terminal/print.ts";
import { CLIENT_OPTIONS, connectionTo, TOKEN_USAGE } from "./options.ts";

const OPTIONS = { timeout: option("S", "wait for so many seconds at most"), ...CLIENT_OPTIONS };

export const usage = usageOf(
  "JOB... [options]",
  `Waits until the jobs have ended. Of one job it prints the result as JSON; of several, a line of JSON for each as it ends.
The exit code is that of the first job, in the order given, that is not complete: 0 complete, 1 failed, 3 cancelled,
4 timed out, 5 not found; 124 if --timeout has passed first.

${TOKEN_USAGE}`,
  OPTIONS,
);

const EXIT_CODES: Record<string, number> = { complete: 0, failed: 1, cancelled: 3, timed_out: 4, not_found: 5 };
const TIMEOUT_EXIT_CODE = 124;
const MAX_JOBS_PER_REQUEST = 100;
/** How long after --timeout an answer may still arrive. */
const ANSWER_GRACE_MS = 1_000;
const MAX_TIMER_SECONDS = 2_000_000;

export async function run(args: string[]): Promise<void> {
  const { values, positionals } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  if (positionals.length === 0)
    throw new WrongArguments("Which job? Give its name as the tool that started it returned it.");
  const seconds = Number(values.timeout ?? Number.POSITIVE_INFINITY);
  if (!(seconds > 0)) throw new WrongArguments("--timeout must be a number of seconds above 0.");
  const names = [...new Set(positionals)];
  const deadline = Date.now() + seconds * 1_000;
  const codes = new Map<string, number>();
  // A server that does not answer is asked again for longer than that.
  const limit = seconds < MAX_TIMER_SECONDS ? AbortSignal.timeout(seconds * 1_000 + ANSWER_GRACE_MS) : undefined;
  const waitFor = async (batch: readonly string[]) => {
    const connection = connectionTo(values.url);
    const remaining = () => batch.filter((name) => !codes.has(name));
    try {
      while (remaining().length > 0 && Date.now() < deadline) {
        const seconds = Math.max(1, Math.min(WAIT_SECONDS, Math.ceil((deadline - Date.now()) / 1_000)));
        for (const name of await awaitJobs(connection, remaining(), seconds, limit)) {
          const job = await readJob(connection, name, limit);
          codes.set(name, EXIT_CODES[job.status] ?? 1);
          if (names.length > 1) print(JSON.stringify(job));
          else if (job.status === "complete") print(JSON.stringify(job.result));
          else printError(`${name} ${job.status}: ${job.error ?? "no reason given"}`);
        }
      }
    } catch (error) {
      if (!limit?.aborted) throw error;
    } finally {
      await connection.close();
    }
  };
  const batches: string[][] = [];
  for (let n = 0; n < names.length; n += MAX_JOBS_PER_REQUEST) batches.push(names.slice(n, n + MAX_JOBS_PER_REQUEST));
  await Promise.all(batches.map(waitFor));
  for (const name of names) {
    process.exitCode = codes.get(name) ?? TIMEOUT_EXIT_CODE;
    if (process.exitCode !== 0) return;
  }
}
