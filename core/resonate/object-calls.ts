/** Calls of methods of a Durable Object through its one remote method, so that no class lists the methods of its code. */
import { ResonateRefused, ResonateUnavailable } from "./connection/failures.ts";

/** An object's one remote method. */
export interface ObjectCalls {
  call(method: string, args: readonly unknown[]): Promise<unknown>;
}

/** The part of a Durable Object namespace that is used for calls. */
export interface CallableObjects {
  idFromName(name: string): object;
  get(id: object): ObjectCalls;
}

/** Methods as they are called from elsewhere: each answers later. */
export type Remote<Methods> = {
  [Name in keyof Methods]: Methods[Name] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Awaited<Result>>
    : never;
};

/** An answer, or the failure of the Resonate server as data: an error loses its class in a call to an object. */
export type Answer<T> = { done: T } | { failed: { message: string; status: number | undefined; isRefused: boolean } };

/**
 * The methods of an object in a role. Each call of one is a remote call, and throws {@link ResonateUnavailable} if the Resonate
 * server or the object itself does not answer.
 */
export function methodsInRole<Methods extends object>(object: ObjectCalls, role: string): Remote<Methods> {
  return proxied(async (name, args) => {
    let answer: Answer<unknown>;
    try {
      answer = (await object.call(nameInRole(role, name), args)) as Answer<unknown>;
    } catch (cause) {
      throw new ResonateUnavailable("the record of its caller could not be reached", { cause });
    }
    return resultOf(answer);
  });
}

/** The name of a method with the role of its object. */
const nameInRole = (role: string, name: string): string => `${role}.${name}`;

/** The role and the method of such a name. */
export function splitRole(name: string): [role: string, method: string] {
  const at = name.indexOf(".");
  return [name.slice(0, at), name.slice(at + 1)];
}

function proxied<Methods extends object>(call: (name: string, args: unknown[]) => Promise<unknown>): Methods {
  return new Proxy({} as Methods, {
    // Not `then`: the methods are no promise.
    get: (_methods, name) =>
      typeof name === "string" && name !== "then" ? (...args: unknown[]) => call(name, args) : undefined,
  });
}

/** The answer of `work`. Other errors than failures of the Resonate server are thrown. */
export async function answered<T>(work: () => T | Promise<T>): Promise<Answer<T>> {
  try {
    return { done: await work() };
  } catch (error) {
    if (!(error instanceof ResonateUnavailable)) throw error;
    const { message, status } = error;
    return { failed: { message, status, isRefused: error instanceof ResonateRefused } };
  }
}

/** The result in an answer. @throws {ResonateUnavailable} for a failure */
export function resultOf<T>(answer: Answer<T>): T {
  if ("done" in answer) return answer.done;
  const { message, isRefused, status } = answer.failed;
  throw new (isRefused ? ResonateRefused : ResonateUnavailable)(message, { status });
}
