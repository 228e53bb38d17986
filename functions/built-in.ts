/** The tools of every deployment, for jobs of all kinds. */

import type { Job } from "../core/author/index.ts";
import type { Tool } from "../core/tools/index.ts";
import { answerQuestion } from "../features/questions/answer-question.ts";
import { scheduleJob } from "../features/schedules/schedule-job.ts";
import { awaitResult } from "./calls/await-result.ts";
import { cancelJob } from "./calls/cancel-job.ts";
import { forgetJobs } from "./calls/forget.ts";
import { listJobs } from "./calls/list.ts";
import { probeStatus } from "./calls/probe-status.ts";

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
