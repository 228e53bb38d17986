/** Gives steps their files, as many as the job may store. */
import type { WorkerFeature } from "../../core/feature.ts";
import type { FileSources } from "./attempt-files.ts";
import { files } from "./step.ts";

declare module "../../core/jobs/job-call.ts" {
  interface JobCall {
    /** How many bytes of files the job may store. */
    storage?: number;
  }
}

export const stepFiles = (sources: FileSources): WorkerFeature => ({
  name: "files",
  run(run, next) {
    const { storage } = run.call;
    if (storage) run.runtime.fileAllowance = { usedBytes: run.memory.journal.outsideBytes, maxBytes: storage };
    return next();
  },
  attempt: files(sources).attempt,
});
