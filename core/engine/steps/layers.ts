/** The features around the work on steps, put together once for each execution. */
import { type Around, around } from "../../around.ts";
import type { StepOptions } from "../../author/context.ts";
import type { Attempt, StepFeature, StepOutcome, StepWork } from "../step-feature.ts";

/** The work on a step, and how it is done when the features around it have had their turn. */
export type StepRun = StepWork & { run(): Promise<StepOutcome | undefined> };
export type AttemptRun = Attempt & { run(): Promise<unknown> };

export interface StepLayers {
  step(step: StepRun): Promise<StepOutcome | undefined>;
  attempt(attempt: AttemptRun): Promise<unknown>;
}

export function layersOf(features: readonly StepFeature[]): StepLayers {
  const step = features.map((feature) => ifAsked(feature.options, feature.step));
  const attempt = features.map((feature) => ifAsked(feature.options, feature.attempt));
  return {
    step: around(step, (each: StepRun) => each.run()),
    attempt: around(attempt, (each: AttemptRun) => each.run()),
  };
}

/** A layer that acts only on steps with one of these options. */
function ifAsked<Subject extends { readonly options: StepOptions }, Result>(
  names: readonly (keyof StepOptions)[] | undefined,
  layer: Around<Subject, Result> | undefined,
): Around<Subject, Result> | undefined {
  if (!names || !layer) return layer;
  return (subject, next) => (names.some((name) => subject.options[name]) ? layer(subject, next) : next());
}
