/** Makes a span for each attempt at a step. */
import type { WorkerFeature } from "../../core/feature.ts";
import { inSpan } from "./spans.ts";

export const attemptSpans: WorkerFeature = {
  name: "trace",
  attempt({ path, step }, next) {
    return inSpan(`step ${path}`, { attributes: { attempt: step.attempt } }, next);
  },
};
