/** Refuses new jobs while the operators have stopped them. Jobs that exist are found as always. */
import { NotStarted } from "../../core/author/index.ts";
import type { JobFeature } from "../../core/jobs/index.ts";

const STOPPED_MESSAGE = "the operator of this server has stopped new jobs for now: try again later";

/** `areStopped`: the operators' setting, which may be some seconds old. */
export const stoppedStarts = (areStopped: () => Promise<boolean>): JobFeature => ({
  async start({ name, existing, jobs }, next) {
    if (!existing && (await areStopped()) && !(await jobs.get(name))) throw new NotStarted(STOPPED_MESSAGE);
    return next();
  },
  needsJob: () => true,
});
