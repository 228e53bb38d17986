/** The addresses by which outside systems settle promises of jobs. */
import { CALLBACKS_PURPOSE } from "../../core/resonate/index.ts";
import type { Route } from "../../core/tools/index.ts";
import { limitTries } from "../../functions/http/refused-tries.ts";
import type { CallbackOptions } from "./receive.ts";

export const callbackRoutes = (options: CallbackOptions): Route[] => [
  {
    methods: ["GET", "POST", "DELETE"],
    paths: [`/${CALLBACKS_PURPOSE}/:sealed`],
    middleware: [limitTries(options.tries)],
    load: async () => {
      const { receive } = await import("./receive.ts");
      return (c) => receive(c, options);
    },
  },
];
