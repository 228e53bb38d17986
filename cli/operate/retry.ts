/**
 * `retry JOB …`: has workers retry blocked jobs now, instead of at the end of the minute, and starts failed jobs again from
 * their last good step.
 */
import { parseArgs } from "node:util";
import { retryJob } from "../../core/jobs/index.ts";
import { flag, usageOf, WrongArguments } from "../arguments.ts";
import { print } from "../terminal/print.ts";
import { SERVER_OPTIONS, withServer } from "./resonate-server.ts";

const OPTIONS = { "from-start": flag("repeats finished steps as well"), ...SERVER_OPTIONS };

export const usage = usageOf(
  "JOB … [options]",
  `Has workers retry blocked jobs now. A job that failed, was cancelled or timed out is started again as its next attempt: with
the same arguments, and without the steps that it had finished, unless it recorded more after a failure, which may have
undone them. JOB is the name of a job in logs and in \`jobs\`.`,
  OPTIONS,
);

export async function run(args: string[]): Promise<void> {
  const { values, positionals: jobs } = parseArgs({ args, allowPositionals: true, options: OPTIONS });
  if (jobs.length === 0) throw new WrongArguments("Name the jobs.");
  await withServer(values, async (server) => {
    for (const job of jobs) print(`${job}: ${await retryJob(server, job, values["from-start"])}`);
  });
}
