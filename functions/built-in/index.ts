/** The tools of every deployment, for jobs of all kinds. */
import type { Tool } from "../../core/author/tool.ts";
import type { Job } from "../../core/definitions/job.ts";
import { answerQuestion } from "./answer-question.ts";
import { forgetJobs } from "./forget.ts";
import { listJobs } from "./list.ts";
import { awaitResult, cancelJob, probeStatus } from "./status.ts";

export const builtIn = (jobs: readonly Job[]): Tool[] => [
  probeStatus,
  awaitResult,
  answerQuestion,
  cancelJob,
  listJobs(jobs),
  forgetJobs,
];
