/** A named durable sleep: `set_timer` starts it, `timer` also waits for it, `get_timer_status` reads it. */
import * as z from "zod";
import { DAY, defineDurableTool, defineJob, defineTool, JobStatus } from "../../core/index.ts";

/** The shortest and longest timer, in seconds. */
const MIN_SECONDS = 1;
const MAX_SECONDS = 365 * 24 * 60 * 60;

/** The longest name of a timer, in UTF-16 code units. */
const MAX_NAME_LENGTH = 100;

/** A timer's name, without `:` and `~`, which separate parts of job names, and without line breaks and lone surrogates. */
const TimerName = z
  .string()
  .min(1)
  .max(MAX_NAME_LENGTH)
  .refine(
    (name) => !/[:~\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(name),
    "it has a character that is not accepted, as a line break is",
  );

/** How late a timer may complete, if no worker runs when it is due. */
const MAX_DELAY_MS = 7 * DAY;

export const timer = defineJob({
  kind: "timer",
  args: z.object({
    timer_name: z.string(),
    /** When the timer fires, ISO 8601 in UTC. Absolute, so that a late start or a replay cannot move it. */
    fires_at: z.iso.datetime(),
  }),
  result: z.string(),
  id: ({ timer_name }) => timer_name,
  // A timer that is set again keeps its time; `set_timer` says so in a note of its own.
  otherArguments: "accept",
  expectedAt: ({ fires_at }) => Date.parse(fires_at),
  deadline: ({ fires_at }) => Date.parse(fires_at) + MAX_DELAY_MS,
  view: { as: "countdown", until: "fires_at" },
});

const timerName = z
  .string()
  // Normalizing may shorten a name, but takes time: names that stay too long are refused first.
  .refine((name) => name.length <= 4 * MAX_NAME_LENGTH, { message: "it is too long", abort: true })
  .trim()
  .normalize()
  .pipe(TimerName)
  .describe(`1 to ${MAX_NAME_LENGTH} characters without : or ~.`);

const TimerInput = z.object({
  timer_name: timerName,
  seconds: z.number().min(MIN_SECONDS).max(MAX_SECONDS).describe("Until it fires."),
});

/** The arguments of the job: the name, and the time at which a timer that is set now fires. */
const timerArgs = ({ timer_name, seconds }: z.output<typeof TimerInput>, { now }: { now: number }) => ({
  timer_name,
  fires_at: new Date(now + seconds * 1_000).toISOString(),
});

/** A timer changes nothing but its caller's list, so hosts may run several calls at once without asking the user. */
const annotations = { readOnlyHint: true, idempotentHint: true, openWorldHint: false };

export const setTimer = defineDurableTool({
  job: timer,
  name: "set_timer",
  title: "Set a timer",
  description:
    "Set a durable timer; returns its job_name at once, for await_result. Set again, a name keeps its timer.",
  input: TimerInput,
  annotations,
  args: timerArgs,
  output: z.object({
    job_name: z.string().describe("For probe_status and await_result."),
    promise_id: z.string().describe("The same as job_name."),
    timer_name: z.string(),
    status: JobStatus,
    fires_at: z.string().describe("When it fires or fired, ISO 8601, UTC."),
    note: z.string().optional(),
  }),
  answer({ jobName, status, args: { fires_at }, generation }, input, context) {
    const note =
      status === "complete"
        ? "A timer of this name has already fired. To set another, choose another name."
        : fires_at !== timerArgs(input, context).fires_at
          ? "A timer of this name was already set and is unchanged."
          : generation > 1
            ? `Attempt ${generation}: the timer of this name before it finished without firing.`
            : undefined;
    return {
      job_name: jobName,
      promise_id: jobName,
      timer_name: input.timer_name,
      status,
      fires_at,
      ...(note !== undefined && { note }),
    };
  },
});

export const timerTool = defineDurableTool({
  job: timer,
  name: "timer",
  title: "Timer to wait for",
  description: "As set_timer, but wait a while for it to fire; a longer one answers with its job_name.",
  input: TimerInput,
  annotations,
  args: timerArgs,
});

export const getTimerStatus = defineTool({
  name: "get_timer_status",
  title: "Get timer status",
  description: "Report a timer's status and remaining seconds, without waiting.",
  input: z.object({ timer_name: timerName }),
  output: z.object({
    timer_name: z.string(),
    status: JobStatus,
    fires_at: z.string().optional().describe("When it fires or fired, ISO 8601, UTC."),
    remaining_seconds: z.number().optional().describe("Seconds until it fires; 0 once it is due."),
  }),
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  async run({ timer_name }, { jobs, now }) {
    const job = await jobs.find(timer, { timer_name, fires_at: "" });
    if (!job) return { timer_name, status: "not_found" as const };
    const { fires_at } = job.args;
    const remaining = job.status === "running" ? Math.max(0, Math.ceil((Date.parse(fires_at) - now) / 1_000)) : 0;
    return { timer_name, status: job.status, fires_at, remaining_seconds: remaining };
  },
});
