/** Calls of methods of a Durable Object through its one remote method, so that no class lists the methods of its code. */

/** An object's one remote method. */
export interface ObjectCalls {
  call(method: string, args: readonly unknown[]): Promise<unknown>;
}

type AnyMethod = (...args: readonly unknown[]) => unknown;

/** Calls a method of `code`. @throws {TypeError} if it has no such method */
export function callMethod(code: object, method: string, args: readonly unknown[]): unknown {
  const found: unknown = Reflect.get(code, method);
  if (typeof found !== "function") throw new TypeError(`The object has no method ${method}.`);
  return (found as AnyMethod).apply(code, args as unknown[]);
}

/** The methods of the code of an object. Each call of one is a remote call. */
export function methodsOf<Methods extends object>(object: ObjectCalls): Methods {
  return new Proxy({} as Methods, {
    // Not `then`: the methods are no promise.
    get: (_methods, name) =>
      typeof name === "string" && name !== "then" ? (...args: unknown[]) => object.call(name, args) : undefined,
  });
}

/** `code` as an object whose methods are called in the same way without a remote call. */
export const callsOf = (code: object): ObjectCalls => ({
  call: async (method, args) => callMethod(code, method, args),
});
