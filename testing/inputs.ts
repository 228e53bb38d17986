/** The inputs of a durable function's steps: those of the function's variables that a step's code names. */
import { Session } from "node:inspector";
import { authorFunctions } from "../core/author/index.ts";

/** The global property through which the inspector gets a function. */
const FUNCTION_PROPERTY = Symbol.for("durable-mcp-edge.inputs");

interface Remote {
  type: string;
  value?: unknown;
  objectId?: string;
}

interface Properties {
  result: { name: string; value?: Remote }[];
  internalProperties?: { name: string; value?: Remote }[];
}

/** Reads variables through the inspector of Node's JavaScript engine; one session for all runs of a process. */
let session: Session | undefined;

/** Compares the inputs of each step with those of the step's first call, in one run of a job. */
export class Inputs {
  /** The number of scopes around the durable function. */
  readonly #outerScopes: number;
  /** The inputs at each step's first call. */
  readonly #firstInputs = new Map<string, Record<string, string>>();

  constructor(code: object) {
    this.#outerScopes = scopesOf(authorFunctions.get(code) ?? code).length;
  }

  /** How the inputs of a step differ from those of its first call; undefined if they are the same. */
  describeDifference(step: string, fn: object): string | undefined {
    const inputs = this.#inputsOf(fn);
    const first = this.#firstInputs.get(step);
    this.#firstInputs.set(step, first ?? inputs);
    const name = first && Object.keys(inputs).find((each) => each in first && first[each] !== inputs[each]);
    if (name === undefined) return undefined;
    return `step "${step}" got ${name} = ${first?.[name]}, and ${inputs[name]} when the function ran again from its records. The inputs of a step must be the same each time: take them from the result of a step, from ctx.now(), ctx.random() or ctx.uuid(), or from the arguments, and change them in no step`;
  }

  #inputsOf(fn: object): Record<string, string> {
    const namesInCode = new Set(String(fn).match(/[A-Za-z_$][\w$]*/g));
    const scopes = scopesOf(fn);
    const inputs: Record<string, string> = {};
    for (const scope of scopes.slice(0, Math.max(scopes.length - this.#outerScopes, 0))) {
      for (const { name, value } of propertiesOf(scope).result) {
        const text = namesInCode.has(name) && !(name in inputs) && value ? textOf(value) : undefined;
        if (text !== undefined) inputs[name] = text;
      }
    }
    return inputs;
  }
}

/** The scopes that a function can see, innermost first, as object ids of the inspector. */
function scopesOf(fn: object): string[] {
  Object.assign(globalThis, { [FUNCTION_PROPERTY]: fn });
  const { result: remote } = inspect<{ result: Remote }>("Runtime.evaluate", {
    expression: 'globalThis[Symbol.for("durable-mcp-edge.inputs")]',
  });
  Reflect.deleteProperty(globalThis, FUNCTION_PROPERTY);
  const internal = propertiesOf(remote.objectId).internalProperties;
  const scopes = internal?.find(({ name }) => name === "[[Scopes]]")?.value?.objectId;
  return propertiesOf(scopes).result.flatMap(({ name, value }) => (/^\d+$/.test(name) ? (value?.objectId ?? []) : []));
}

const propertiesOf = (objectId: string | undefined): Properties =>
  objectId === undefined ? { result: [] } : inspect("Runtime.getProperties", { objectId, ownProperties: true });

/** The first 300 characters of a plain value as JSON; undefined for values that are not compared: functions, contexts, promises. */
function textOf({ type, value, objectId }: Remote): string | undefined {
  if (objectId === undefined) return type === "undefined" ? "undefined" : JSON.stringify(value);
  const functionDeclaration = `function () {
    const plain = [Object.prototype, Array.prototype, null].includes(Object.getPrototypeOf(this));
    try { return plain ? JSON.stringify(this) : undefined } catch {}
  }`;
  const { result } = inspect<{ result: Remote }>("Runtime.callFunctionOn", {
    objectId,
    functionDeclaration,
    returnByValue: true,
  });
  return typeof result.value === "string" ? result.value.slice(0, 300) : undefined;
}

/** Sends a request to the inspector of this process, which answers synchronously. */
function inspect<T>(method: string, parameters: object): T {
  if (!session) {
    session = new Session();
    session.connect();
  }
  let answer: unknown;
  session.post(method, parameters, (error, result) => {
    if (error) throw error;
    answer = result;
  });
  return answer as T;
}
