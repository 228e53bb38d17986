/** Makes a span for each attempt at a step. */
import type { StepFeature } from "../../core/engine/step-feature.ts";
import { inSpan } from "./spans.ts";

export const attemptSpans: StepFeature = {
  attempt({ path, step }, next) {
    return inSpan(`step ${path}`, { attributes: { attempt: step.attempt } }, next);
  },
};
