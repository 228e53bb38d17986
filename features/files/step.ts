/** Gives steps their files: `step.file` and `step.read`. */
import type { Step } from "../../core/author/context.ts";
import type { JobOfStep, StepFeature } from "../../core/engine/step-feature.ts";
import { AttemptFiles, type AttemptOfFiles, type FileRoom, type FileSources } from "./attempt-files.ts";

declare module "../../core/engine/step-feature.ts" {
  interface JobOfStep {
    /** Undefined if the job may store any number of bytes of files. */
    fileRoom?: FileRoom | undefined;
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
      let own: AttemptFiles | undefined;
      let hasEnded = false;
      const filesOf = () => {
        own ??= new AttemptFiles(sources, attempt, attempt.job.fileRoom);
        // The function has not awaited what it stores.
        if (hasEnded) void own.discard();
        return own;
      };
      attempt.step.file = (name, data, options) => filesOf().file(name, data, options);
      attempt.step.read = (file, limits) => filesOf().read(file, limits);
      try {
        const value = await next();
        hasEnded = true;
        if (own) attempt.outsideBytes += await own.keep(value);
        return value;
      } catch (error) {
        hasEnded = true;
        await own?.discard();
        throw error;
      }
    },
  }) satisfies StepFeature;
