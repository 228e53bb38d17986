/** The tools of every deployment, for jobs of all kinds. */

import type { Job } from "../core/author/index.ts";
import type { Tool } from "../core/tools/index.ts";
import { answerQuestion } from "../features/questions/answer-question.ts";
import { scheduleJob } from "../features/schedules/schedule-job.ts";
import { forgetJobs } from "./calls/forget.ts";
import { listJobs } from "./calls/list.ts";
import { awaitResult, cancelJob, probeStatus } from "./calls/status.ts";

/** `tools`: the deployment's own tools. */
export const builtIn = (jobs: readonly Job[], tools: readonly Tool[] = []): Tool[] => [
  probeStatus,
  awaitResult,
  answerQuestion,
  cancelJob,
  listJobs(jobs),
  forgetJobs,
  scheduleJob(tools),
];
