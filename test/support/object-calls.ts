import type { ObjectCalls } from "../../core/resonate/object-calls.ts";

/** An object of the platform that has these methods, by the names with which it is called. */
export const objectWith = (methods: Readonly<Record<string, (...args: never[]) => unknown>>): ObjectCalls => ({
  async call(name, args) {
    const method = methods[name];
    if (!method) throw new TypeError(`The object has no method ${name}.`);
    return method(...(args as never[]));
  },
});
