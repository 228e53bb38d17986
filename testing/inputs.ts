/** The inputs of a durable function's steps: those of the function's variables that a step's code names. */
import { authorFunctions } from "../core/author/index.ts";
import { scopesOf } from "../core/engine/index.ts";

interface Input {
  value: unknown;
  /** The value at the call. */
  text: string;
}

/** Compares the inputs of each step with those of the step's first call, in one run of a job. */
export class Inputs {
  /** The number of scopes around the durable function. */
  readonly #outerScopes: number;
  /** The inputs at each step's first call. */
  readonly #firstInputs = new Map<string, Record<string, Input>>();

  constructor(code: object) {
    this.#outerScopes = scopesOf(authorFunctions.get(code) ?? code).length;
  }

  /** How the inputs of a step differ from those of its first call; undefined if they are the same. */
  describeDifference(step: string, fn: object): string | undefined {
    const inputs = this.#inputsOf(fn);
    const first = this.#firstInputs.get(step);
    this.#firstInputs.set(step, first ?? inputs);
    for (const [name, { text }] of Object.entries(inputs)) {
      const before = first?.[name];
      // What both runs share, such as a module's cache, may have changed meanwhile: it is the same for both.
      if (!before || before.text === text || textOf(before.value) === text) continue;
      return differs(step, name, before.text, text);
    }
    return undefined;
  }

  #inputsOf(fn: object): Record<string, Input> {
    const namesInCode = new Set(String(fn).match(/[A-Za-z_$][\w$]*/g));
    const scopes = scopesOf(fn);
    const inputs: Record<string, Input> = {};
    for (const scope of scopes.slice(0, Math.max(scopes.length - this.#outerScopes, 0))) {
      for (const [name, value] of Object.entries(scope)) {
        const text = namesInCode.has(name) && !(name in inputs) ? textOf(value) : undefined;
        if (text !== undefined) inputs[name] = { text, value };
      }
    }
    return inputs;
  }
}

const differs = (step: string, name: string, before: string, text: string): string =>
  `step "${step}" got ${name} = ${before}, and ${text} when the function ran again from its records. The inputs of a step must be the same each time: take them from the result of a step, from ctx.now(), ctx.random() or ctx.uuid(), or from the arguments, and change them in no step`;

/** The first 300 characters of a plain value as JSON; undefined for values that are not compared: functions, contexts, promises. */
function textOf(value: unknown): string | undefined {
  if (value === undefined) return "undefined";
  if (typeof value === "function") return undefined;
  const isPlain = Object(value) !== value || PLAIN.includes(Object.getPrototypeOf(value));
  try {
    return isPlain ? JSON.stringify(value)?.slice(0, 300) : undefined;
  } catch {
    return undefined; // JSON cannot hold it
  }
}

const PLAIN = [Object.prototype, Array.prototype, null];
