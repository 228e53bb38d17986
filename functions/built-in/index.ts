/** The tools of every deployment, for jobs of all kinds. */
import type { Tool } from "../../core/author/tool.ts";
import type { Job } from "../../core/definitions/job.ts";
import { answerQuestion } from "./answer-question.ts";
import { forgetJobs } from "./forget.ts";
import { listJobs } from "./list.ts";
import { scheduleJob } from "./schedule-job.ts";
import { awaitResult, cancelJob, probeStatus } from "./status.ts";

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
