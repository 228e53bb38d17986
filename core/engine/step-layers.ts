/** The features around the steps of jobs, put together once for each list of features. */
import { type Around, around } from "../around.ts";
import type { StepOptions } from "../author/context.ts";
import type { PromiseRecord } from "../resonate/connection/protocol.ts";
import type { Attempt, NewRecord, StepFeature, StepOutcome, StepWork } from "./step-feature.ts";

/** A subject of features, and what is done when all of them have had their turn. */
type Run<Subject, Result> = Subject & { run(): Promise<Result> };

export type StepRun = Run<StepWork, StepOutcome | undefined>;
export type AttemptRun = Run<Attempt, unknown>;
export type RecordRun = Run<NewRecord, PromiseRecord>;

export interface StepLayers {
  step(step: StepRun): Promise<StepOutcome | undefined>;
  attempt(attempt: AttemptRun): Promise<unknown>;
  record(record: RecordRun): Promise<PromiseRecord>;
}

const layersOfFeatures = new WeakMap<readonly StepFeature[], StepLayers>();

export function layersOf(features: readonly StepFeature[]): StepLayers {
  const existing = layersOfFeatures.get(features);
  if (existing) return existing;
  const layers = compose(features);
  layersOfFeatures.set(features, layers);
  return layers;
}

const compose = (features: readonly StepFeature[]): StepLayers => ({
  step: around(
    features.map(({ stepOptions, step }) => ifAsked(stepOptions, step)),
    (each: StepRun) => each.run(),
  ),
  attempt: around(
    features.map(({ stepOptions, attempt }) => ifAsked(stepOptions, attempt)),
    (each: AttemptRun) => each.run(),
  ),
  record: around(features.map(ifStored), (each: RecordRun) => each.run()),
});

/** A layer that acts only on steps with one of these options. */
function ifAsked<Subject extends { readonly options: StepOptions }, Result>(
  names: readonly (keyof StepOptions)[] | undefined,
  layer: Around<Subject, Result> | undefined,
): Around<Subject, Result> | undefined {
  if (!names || !layer) return layer;
  return (subject, next) => (names.some((name) => subject.options[name]) ? layer(subject, next) : next());
}

/** A layer that acts only once the job has stored as much as the feature says. */
function ifStored({ record, recordFromBytes = 0 }: StepFeature): StepFeature["record"] {
  if (!record || recordFromBytes === 0) return record;
  return (subject, next) => (subject.storedBytes < recordFromBytes ? next() : record(subject, next));
}
