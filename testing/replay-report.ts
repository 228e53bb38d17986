/** Compares the runs of a replay, and describes how they differ. */
import { fromStored, StepInterrupted } from "../core/author/index.ts";
import type { Plan } from "./simulation/plan.ts";
import type { TrialResult } from "./simulation/trial.ts";

/** The `atMostOnce` steps whose outcome a death has left unknown, with the messages of their errors. */
const interruptedSteps = ({ records }: TrialResult): { step: string; message: string }[] =>
  records.flatMap(({ event }) => {
    const error = event.kind === "step" && event.error && fromStored(event.error);
    return error instanceof StepInterrupted ? [{ step: event.op, message: error.message }] : [];
  });

/** The names of the `atMostOnce` steps whose outcome a death has left unknown, as text. */
export const unknownOutcomes = (result: TrialResult): string =>
  JSON.stringify(
    interruptedSteps(result)
      .map(({ step }) => step)
      .sort(),
  );

/** The outcome of a run as text, equal for runs with the same outcome: without the times at which interrupted steps were begun. */
export function outcomeOf(result: TrialResult): string {
  const { outcome, value, error } = result;
  const text = JSON.stringify(outcome === "complete" ? { value } : { outcome, ...error });
  return interruptedSteps(result).reduce((rest, { message }) => rest.replaceAll(message, ""), text);
}

const DEATHS_IN_WORDS = {
  before: "before it arrived",
  after: "before its answer came back",
  alone: "which got lost, while the requests sent with it arrived",
};

/** How the outcome of `trial`, in which the worker dies as planned, differs from that of `model`, and advice. */
export function difference(model: TrialResult, trial: TrialResult, { deaths, isWarm }: Plan): string {
  const [death] = deaths;
  const circumstances = death
    ? `With its worker killed at request ${death.at} (${trial.points[death.at - 1]}), ${DEATHS_IN_WORDS[death.how]}, and the job continued by another${isWarm ? "" : " each time"}`
    : "Run by another worker after each sleep";
  const modelCircumstances = unknownOutcomes(model) === "[]" ? "Undisturbed" : "Killed elsewhere";
  return `${circumstances}, the function ${describe(trial)}. ${modelCircumstances} it ${describe(model)}. ${stepAdvice(model, trial) ?? GENERAL_ADVICE}`;
}

function describe({ outcome, value, error }: TrialResult): string {
  if (outcome === "complete") return `returned ${JSON.stringify(value)}`;
  return outcome === "blocked" ? `could not continue (${error?.message})` : `threw ${error?.name}: ${error?.message}`;
}

const GENERAL_ADVICE =
  "Put everything that may differ the second time (a request, a random number, the time of day) into a step, change nothing outside of a step in it, and await only what ctx returns";

/** The advice for the first step whose own result differs; undefined if all steps returned the same. */
function stepAdvice(model: TrialResult, other: TrialResult): string | undefined {
  const modelValues = stepValues(model);
  for (const [step, value] of stepValues(other)) {
    const modelValue = modelValues.get(step);
    if (modelValue === undefined || modelValue === value) continue;
    return `The step ${step} itself returned ${value} in one run and ${modelValue} in the other: each run executes it. Give it a stand-in, or use ctx.now() or ctx.uuid()`;
  }
  return undefined;
}

/** The values that steps returned, as JSON. */
function stepValues({ runs }: TrialResult): Map<string, string> {
  const steps = new Map<string, string>();
  for (const [i, { records }] of runs.entries()) {
    for (const { event } of records) {
      if (event.kind !== "step" || event.error) continue;
      steps.set(`"${event.op}"${i > 0 ? ` of run ${i + 1}` : ""}`, JSON.stringify(event.value) ?? "undefined");
    }
  }
  return steps;
}

/** The error with which a run failed, as the function threw it. */
export function errorOf({ error, isTimedOut }: TrialResult, answers: object = {}): Error {
  const { name = "Error", message = "" } = error ?? {};
  const questions = Object.keys(answers).join(", ") || "none";
  const thrown = new Error(
    isTimedOut
      ? `the job timed out: is its deadline too early, or is there a question that nobody answers? (answers: ${questions})`
      : message,
  );
  Object.defineProperty(thrown, "name", { value: name, configurable: true, writable: true });
  return thrown;
}
