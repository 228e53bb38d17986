/**
 * `retry JOB …`: has workers retry blocked jobs now, instead of at the end of the minute, and starts failed ones again from
 * their last good step.
 */
import { parseArgs } from "node:util";
import { retryJob } from "../../core/jobs/operating/retry.ts";
import { readArguments } from "../arguments.ts";
import { readProject, typed } from "../project.ts";
import { findServer, SERVER_OPTIONS, SERVER_USAGE, withServer } from "./resonate-server.ts";

export const usage = () => `Usage: ${typed(readProject(), "retry", "JOB … [options]")}

Has workers retry blocked jobs now. A job that failed, was cancelled or timed out is started again as its next attempt: with
the same arguments, and without the steps that it had finished, unless it recorded more after a failure, which may have
undone them. JOB is the name of a job in logs and in \`jobs\`.

  --from-start     repeats finished steps as well
${SERVER_USAGE}
  --help           show this text
`;

export async function run(args: string[]): Promise<void> {
  const options = readArguments(() => {
    const own = { ...SERVER_OPTIONS, "from-start": { type: "boolean", default: false } } as const;
    const { values, positionals } = parseArgs({ args, allowPositionals: true, options: own });
    if (positionals.length === 0) throw new Error("Name the jobs.");
    return { jobs: positionals, isFromStart: values["from-start"], server: findServer(values) };
  });
  await withServer(options.server, async (server) => {
    for (const job of options.jobs) console.log(`${job}: ${await retryJob(server, job, options.isFromStart)}`);
  });
}
