/** The tools that every deployment has: those that look at jobs, whatever started them. */
import type { Job } from "../../core/jobs/job.ts";
import type { Tool } from "../../core/tools/tool.ts";
import { answerQuestion } from "./answer.ts";
import { listJobs } from "./list.ts";
import { awaitResult, cancelJob, probeStatus } from "./status.ts";

export const builtIn = (jobs: readonly Job[]): Tool[] => [
  probeStatus,
  awaitResult,
  answerQuestion,
  cancelJob,
  listJobs(jobs),
];
