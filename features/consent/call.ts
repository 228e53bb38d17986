/** Asks a user who can be asked: there, a model's statement that the user agreed does not count. */
import type { CallFeature } from "../../core/tools/index.ts";

export const consent: CallFeature = {
  call({ consent: names = [] }) {
    if (names.length === 0) return undefined;
    return (call, next) => {
      if (call.context.asks) call.args = withoutKeys(call.args, names);
      return next();
    };
  },
};

const withoutKeys = (args: unknown, keys: readonly string[]): unknown =>
  Object.fromEntries(Object.entries(args as object).filter(([key]) => !keys.includes(key)));
