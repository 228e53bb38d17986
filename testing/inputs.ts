/** The inputs of a durable function's steps: those of the function's variables that a step's code names. */
import { Session } from "node:inspector";
import { authored } from "../core/author/implement.ts";

/** The global property through which the inspector gets a function. */
const HANDED = Symbol.for("durable-mcp-edge.inputs");

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
  readonly #outer: number;
  readonly #before = new Map<string, Record<string, string>>();

  constructor(code: object) {
    this.#outer = scopesOf(authored.get(code) ?? code).length;
  }

  /** Describes how the inputs of a step differ from before; undefined if they are the same. */
  differ(step: string, fn: object): string | undefined {
    const now = this.#of(fn);
    const before = this.#before.get(step);
    this.#before.set(step, before ?? now);
    const name = before && Object.keys(now).find((each) => each in before && before[each] !== now[each]);
    if (name === undefined) return undefined;
    return `step "${step}" got ${name} = ${before?.[name]}, and ${now[name]} when the function ran again from its records. The inputs of a step must be the same each time: take them from the result of a step, from ctx.now(), ctx.random() or ctx.uuid(), or from the arguments, and change them in no step`;
  }

  #of(fn: object): Record<string, string> {
    const named = new Set(String(fn).match(/[A-Za-z_$][\w$]*/g));
    const scopes = scopesOf(fn);
    const found: Record<string, string> = {};
    for (const scope of scopes.slice(0, Math.max(scopes.length - this.#outer, 0))) {
      for (const { name, value } of propertiesOf(scope).result) {
        const text = named.has(name) && !(name in found) && value ? textOf(value) : undefined;
        if (text !== undefined) found[name] = text;
      }
    }
    return found;
  }
}

/** The scopes that a function can see, innermost first, as object ids of the inspector. */
function scopesOf(fn: object): string[] {
  Object.assign(globalThis, { [HANDED]: fn });
  const found = asked<{ result: Remote }>("Runtime.evaluate", {
    expression: 'globalThis[Symbol.for("durable-mcp-edge.inputs")]',
  });
  Reflect.deleteProperty(globalThis, HANDED);
  const internal = propertiesOf(found.result.objectId).internalProperties;
  const scopes = internal?.find(({ name }) => name === "[[Scopes]]")?.value?.objectId;
  return propertiesOf(scopes).result.flatMap(({ name, value }) => (/^\d+$/.test(name) ? (value?.objectId ?? []) : []));
}

const propertiesOf = (objectId: string | undefined): Properties =>
  objectId === undefined ? { result: [] } : asked("Runtime.getProperties", { objectId, ownProperties: true });

/** The first 300 characters of a plain value as JSON; undefined for values that are not compared: functions, contexts, promises. */
function textOf({ type, value, objectId }: Remote): string | undefined {
  if (objectId === undefined) return type === "undefined" ? "undefined" : JSON.stringify(value);
  const functionDeclaration = `function () {
    const plain = [Object.prototype, Array.prototype, null].includes(Object.getPrototypeOf(this));
    try { return plain ? JSON.stringify(this) : undefined } catch {}
  }`;
  const { result } = asked<{ result: Remote }>("Runtime.callFunctionOn", {
    objectId,
    functionDeclaration,
    returnByValue: true,
  });
  return typeof result.value === "string" ? result.value.slice(0, 300) : undefined;
}

/** Sends a request to the inspector of this process, which answers synchronously. */
function asked<T>(method: string, parameters: object): T {
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
