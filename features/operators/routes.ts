/** The paths for operators: the page, its data, and their actions. */
import type { Route } from "../../core/tools/index.ts";
import { limitTries, type RefusedTries } from "../../functions/http/refused-tries.ts";
import type { OperatorOptions } from "./options.ts";

export const operatorRoutes = (tries: RefusedTries, options: OperatorOptions): Route[] => [
  {
    methods: ["GET", "POST", "DELETE"],
    paths: ["/operate", "/operate/*"],
    middleware: [limitTries(tries)],
    load: async () => {
      const { operate } = await import("./handler.ts");
      return (c) => operate(c.req.raw, options);
    },
  },
];
