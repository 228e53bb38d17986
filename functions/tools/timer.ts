import * as z from "zod";
import { MAX_SECONDS, MAX_TIMER_NAME, MIN_SECONDS, splitGeneration, Timer, TimerName, timer } from "../jobs/index.ts";
import type { DurablePromise } from "../resonate/store.ts";
import { newestGeneration, startJob } from "../start.ts";
import { JobStatus, statusOf } from "../status.ts";
import { lenientNumber, lenientString } from "./arguments.ts";
import { defineJobTool } from "./job-tool.ts";
import { defineTool } from "./tool.ts";

const timerName = lenientString("timer_name", z.string().trim().normalize().pipe(TimerName)).describe(
  `The timer's name: 1 to ${MAX_TIMER_NAME} characters, on one line, without \`:\` or \`~\`. It is how the timer is found again.`,
);

const timerInput = z.object({
  timer_name: timerName,
  seconds: lenientNumber(z.number().min(MIN_SECONDS).max(MAX_SECONDS)).describe(
    `How long until it fires, a number of seconds from ${MIN_SECONDS} to ${MAX_SECONDS} (365 days).`,
  ),
});

const timerToSet = ({ timer_name, seconds }: z.output<typeof timerInput>, now: number): Timer => ({
  timer_name,
  fires_at: new Date(now + seconds * 1_000).toISOString(),
});

export const setTimer = defineTool({
  name: "set_timer",
  title: "Set a timer",
  description:
    "Set a durable timer, from a second to a year. Returns at once; the timer goes on by itself and survives crashes " +
    "and restarts. Look at it with get_timer_status, or wait for it by passing promise_id to await_result, from any " +
    "session. A name is one timer: setting it again finds the timer that is there, and never restarts or changes it.",
  input: timerInput,
  output: z.object({
    promise_id: z.string().describe("The job name, for probe_status and await_result."),
    timer_name: z.string(),
    status: JobStatus,
    fires_at: z.string().describe("When it fires or fired, ISO 8601, UTC."),
    note: z.string().optional().describe("What is special about this timer, when anything is."),
  }),
  annotations: { idempotentHint: true, readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  async run(args, { store, now }) {
    const { timer_name } = args;
    const wanted = timerToSet(args, now);
    const promise = await startJob(store, timer, wanted, now);
    const { fires_at } = timerOf(promise);
    const { generation } = splitGeneration(promise.name);
    const note =
      promise.state === "resolved"
        ? "A timer of this name has already fired. To set another, choose another name."
        : fires_at !== wanted.fires_at
          ? "A timer of this name was already set and is unchanged."
          : generation > 1
            ? `Attempt ${generation}: the timer of this name before it ended without firing.`
            : undefined;
    return { promise_id: promise.name, timer_name, status: statusOf(promise), fires_at, ...(note && { note }) };
  },
});

export const timerTool = defineJobTool({
  name: "timer",
  title: "Timer to wait for",
  description:
    "Set a durable timer and wait until it fires. It is the same timer that set_timer sets; when it takes longer than a " +
    "call should, the answer is its job_name, to wait for with await_result.",
  input: timerInput,
  annotations: { idempotentHint: true, readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  start: (args, { store, now }) => startJob(store, timer, timerToSet(args, now), now),
});

export const getTimerStatus = defineTool({
  name: "get_timer_status",
  title: "Get timer status",
  description:
    "Look at a timer by its name, without waiting: running with the seconds that remain, complete once it has fired, " +
    "or not_found. Works for timers set in any session.",
  input: z.object({ timer_name: timerName }),
  output: z.object({
    timer_name: z.string(),
    status: JobStatus,
    fires_at: z.string().optional().describe("When it fires or fired, ISO 8601, UTC."),
    remaining_seconds: z.number().optional().describe("Seconds until it fires; 0 once it is due."),
  }),
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  async run({ timer_name }, { store, now, signal }) {
    const base = timer.name({ timer_name, fires_at: "" });
    const first = await store.get(base, signal);
    if (!first) return { timer_name, status: "not_found" as const };
    const { promise } = await newestGeneration(store, base, first);
    const { fires_at } = timerOf(promise);
    const remaining = promise.state === "pending" ? Math.max(0, Math.ceil((Date.parse(fires_at) - now) / 1_000)) : 0;
    return { timer_name, status: statusOf(promise), fires_at, remaining_seconds: remaining };
  },
});

function timerOf(promise: DurablePromise): Timer {
  return Timer.parse(promise.args);
}
