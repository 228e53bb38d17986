/** Names the trace of a job in its log. */
import { TRACE_TAG, traceIdIn, traceparentIn } from "../../core/author/index.ts";
import type { WorkerFeature } from "../../core/feature.ts";

/** Adds the id of the trace in which a job was started to its log lines. */
export const traceIds: WorkerFeature = {
  name: "trace",
  task(task, next) {
    const tag = task.promise.tags[TRACE_TAG];
    const parent = tag === undefined ? undefined : traceparentIn(tag);
    if (parent !== undefined) task.log = task.log.child({ trace_id: traceIdIn(parent) });
    return next();
  },
};
