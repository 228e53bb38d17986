/** The jobs behind the task tools that the conformance suite expects of a server. */
import * as z from "zod";
import { type AnyJob, defineJob, HOUR, type Job } from "../../functions/jobs/index.ts";

function fixture<Args>(
  func: string,
  args: z.ZodType<Args>,
  suffix: (args: Args) => string,
  keepsJournal = false,
): Job<Args> {
  return defineJob<Args>({
    func,
    args,
    name: (given) => `${func}_${suffix(given)}`,
    owns: (name) => name.startsWith(`${func}_`) && !/[:~]/.test(name),
    deadline: (_args, now) => now + HOUR,
    keepsJournal,
  });
}

const none = z.object({});

export const slowCompute = fixture(
  "slow_compute",
  z.object({ seconds: z.number(), label: z.string() }),
  ({ seconds, label }) => `${label}_${seconds}`,
);
export const failingJob = fixture("failing_job", none, () => "once");
export const protocolErrorJob = fixture("protocol_error_job", none, () => "once");
export const confirmDelete = fixture("confirm_delete", z.object({ filename: z.string() }), (a) => a.filename, true);
export const multiInput = fixture("multi_input", z.object({ name: z.string() }), (args) => args.name, true);
export const hello = fixture("hello", z.object({ name: z.string() }), (args) => args.name);

export const FIXTURE_JOBS: readonly AnyJob[] = [
  slowCompute,
  failingJob,
  protocolErrorJob,
  confirmDelete,
  multiInput,
  hello,
];
