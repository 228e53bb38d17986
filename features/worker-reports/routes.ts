/** The address at which workers report. */
import { REPORTS_PATH } from "../../core/jobs/index.ts";
import type { Route } from "../../core/tools/index.ts";
import { limitTries, type RefusedTries } from "../../functions/http/refused-tries.ts";
import type { ReportOptions } from "./receive.ts";

export const reportRoutes = (tries: RefusedTries, options: ReportOptions): Route[] => [
  {
    methods: ["GET", "POST", "DELETE"],
    paths: [`/${REPORTS_PATH}`],
    middleware: [limitTries(tries)],
    load: async () => {
      const { receive } = await import("./receive.ts");
      return (c) => receive(c, options);
    },
  },
];
