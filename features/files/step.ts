/** Gives steps their files: `step.file` and `step.read`. */
import type { Step } from "../../core/author/index.ts";
import type { JobOfStep, StepFeature } from "../../core/engine/index.ts";
import { AttemptFiles, type AttemptOfFiles, type FileAllowance, type FileSources } from "./attempt-files.ts";

declare module "../../core/engine/step-feature.ts" {
  interface JobOfStep {
    /** Undefined if the job may store any number of bytes of files. */
    fileAllowance?: FileAllowance | undefined;
  }
}

/** An attempt as far as its files are concerned. */
interface AttemptWithFiles extends AttemptOfFiles {
  job: JobOfStep;
  outsideBytes: number;
  step: Pick<Step, "attempt" | "signal"> & { -readonly [Member in "file" | "read"]: Step[Member] };
}

export const files = (sources: FileSources) =>
  ({
    async attempt(attempt: AttemptWithFiles, next: () => Promise<unknown>): Promise<unknown> {
      let attemptFiles: AttemptFiles | undefined;
      let hasEnded = false;
      const filesOf = () => {
        attemptFiles ??= new AttemptFiles(sources, attempt, attempt.job.fileAllowance);
        // The function has not awaited what it stores.
        if (hasEnded) void attemptFiles.discard();
        return attemptFiles;
      };
      attempt.step.file = (name, data, options) => filesOf().file(name, data, options);
      attempt.step.read = (file, limits) => filesOf().read(file, limits);
      try {
        const value = await next();
        hasEnded = true;
        if (attemptFiles) attempt.outsideBytes += await attemptFiles.keepReferenced(value);
        return value;
      } catch (error) {
        hasEnded = true;
        await attemptFiles?.discard();
        throw error;
      }
    },
  }) satisfies StepFeature;
