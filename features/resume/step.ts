/** Gives a new attempt at a job the outcomes of the steps that the earlier attempt finished. */
import type { JournalRecord, StepFeature } from "../../core/engine/index.ts";

/** `finished`: the records of the steps to take over, by their paths. Only the first run of the job takes them over. */
export const resumedSteps = (finished: ReadonlyMap<string, JournalRecord>): StepFeature => ({
  async step({ kind, path, job }, next) {
    const record = job.run ? undefined : finished.get(path);
    if (!record || record.event.kind !== kind || record.event.error) return next();
    const { outsideBytes } = record.event;
    return { value: record.value, ...(outsideBytes !== undefined && { outsideBytes }) };
  },
});
