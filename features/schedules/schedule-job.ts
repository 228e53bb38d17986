import * as z from "zod";
import { JobStatus, startJob, statusOf } from "../../core/jobs/index.ts";
import { canonical, exactJsonOf, isRecord, MAX_DEPTH, splitGeneration } from "../../core/resonate/index.ts";
import {
  ANSWER_SUBJECT,
  builtInTool,
  callerJobs,
  check,
  jsonText,
  refusal,
  type Tool,
  ToolError,
} from "../../core/tools/index.ts";
import { MIN_INTERVAL_SECONDS } from "./min-interval.ts";
import { type Schedule, schedule } from "./schedule.ts";

const NAME = "schedule_job";

const input = z.object({
  name: z
    .string()
    .normalize("NFC")
    .refine((name) => name.length <= 100 && /^[^:~\p{Cc}\p{Cs}\p{Zl}\p{Zp}]+$/u.test(name), "it is not accepted")
    .describe("1 to 100 characters without : or ~."),
  tool: z.string().max(128).describe("One that starts a job."),
  arguments: jsonText.optional().describe("As JSON."),
  cron: z.string().max(200).optional().describe('Five fields, such as "0 3 * * 1-5".'),
  timezone: z.string().max(100).optional().describe("IANA; default: UTC."),
  every: z
    .number()
    .max(366 * 86_400)
    .optional()
    .describe(`In seconds, from ${MIN_INTERVAL_SECONDS}.`),
  at: z.string().max(40).optional().describe("Once: ISO 8601, with an offset or timezone."),
  missed: z.enum(["skip", "last"]).optional().describe("While all was down."),
  overlap: z.enum(["skip", "queue", "allow"]).optional().describe("While the last one runs."),
});

export const scheduleJob = (tools: readonly Tool[]): Tool =>
  builtInTool({
    name: NAME,
    title: "Schedule a job",
    description:
      "Call a tool by cron, every some seconds or once; probe_status tells when it fires, cancel_job ends it.",
    input,
    output: z.object({
      job_name: z.string().describe("Of the schedule."),
      status: JobStatus,
      next_at: z.string().optional().describe("ISO 8601, UTC."),
      note: z.string().optional(),
    }),
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    async run(requested, { store, now, signal, until, mayConfirm }) {
      const { name, tool: toolName, cron, timezone, every, at, missed = "skip", overlap = "skip" } = requested;
      const refused = (...reasons: string[]) => new ToolError(refusal(NAME, reasons));
      if (!store.records) throw refused("this deployment has no CALLER binding, whose object fires schedules");
      const tool = tools.find((one) => one.name === toolName);
      if (!tool?.argsOf) {
        const known = tools.flatMap((one) => (one.argsOf ? [one.name] : [])).join(", ");
        throw refused(`tool: ${JSON.stringify(toolName)} starts no job. Accepted: ${known}`);
      }
      const from = every === undefined ? {} : { from: now };
      const when = Object.fromEntries(
        Object.entries({ cron, timezone, every, at, ...from }).filter(([, value]) => value !== undefined),
      );
      const { nextAfter, problemIn } = await import("./times.ts");
      const problem = problemIn(when, now);
      if (problem !== undefined) throw refused(problem);
      const args = requested.arguments === undefined ? {} : exactJsonOf(requested.arguments);
      if (!isRecord(args)) throw refused(`arguments: must be a JSON object of up to ${MAX_DEPTH} levels`);
      const checked = await check(tool.input, args);
      if ("problems" in checked) throw refused(...checked.problems.map((each) => `arguments: ${each}`));
      const next = nextAfter(when, now);
      // The tool refuses wrong arguments now, and not only when the schedule fires.
      const context = { jobs: callerJobs(store, now, signal), now: next ?? now, signal, until, mayConfirm };
      await tool.argsOf(checked.args, { ...context, tasks: false, asks: false, inputResponses: {} });
      const spec: Schedule = { name, tool: toolName, arguments: args, when, missed, overlap };
      const promise = await startJob(store, schedule, spec, now);
      const existing = promise.args as Schedule;
      // A repeat has another `from`, and may have its arguments in another order.
      const contentOf = (one: Schedule) => canonical({ ...one, when: { ...one.when, from: 0 } });
      const note =
        contentOf(existing) !== contentOf(spec)
          ? "A schedule of this name exists and is unchanged. To change it, cancel it with cancel_job first."
          : splitGeneration(promise.name).generation > 1
            ? "The schedule of this name before it has ended."
            : undefined;
      const nextAt = promise.state === "pending" ? nextAfter(existing.when, now) : undefined;
      return {
        job_name: promise.name,
        status: statusOf(promise),
        ...(nextAt !== undefined && { next_at: new Date(nextAt).toISOString() }),
        ...(note !== undefined && { note }),
        [ANSWER_SUBJECT]: { job: promise.name },
      };
    },
  });
