/** The jobs behind the task tools that the conformance suite expects from a server. */
import * as z from "zod";
import { defineJob, HOUR } from "../../core/index.ts";

function fixture<Args>(kind: string, args: z.ZodType<Args>, id: (args: Args) => string) {
  return defineJob({ kind, args, id, deadline: HOUR });
}

const none = z.object({});

export const slowCompute = fixture(
  "slow_compute",
  z.object({ seconds: z.number(), label: z.string() }),
  ({ seconds, label }) => `${label}_${seconds}`,
);
export const failingJob = fixture("failing_job", none, () => "once");
export const protocolErrorJob = fixture("protocol_error_job", none, () => "once");
export const confirmDelete = fixture("confirm_delete", z.object({ filename: z.string() }), (args) => args.filename);
export const multiInput = fixture("multi_input", z.object({ name: z.string() }), (args) => args.name);
export const openQuestion = fixture("open_question", z.object({ name: z.string() }), (args) => args.name);
export const hello = fixture("hello", z.object({ name: z.string() }), (args) => args.name);
