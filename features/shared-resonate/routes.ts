/** The paths at which workers elsewhere and operators reach what the deployment's objects keep. */
import type { ResonateNamespace } from "../../core/resonate/index.ts";
import type { Route } from "../../core/tools/index.ts";
import { limitTries } from "../../functions/http/refused-tries.ts";
import type { CallerRows, ProxyOptions } from "./proxy.ts";

/** `resonate`: the account's own Resonate server. */
export const resonateRoutes = (resonate: ResonateNamespace, options: ProxyOptions): Route[] => [
  {
    methods: ["GET", "POST"],
    paths: ["/resonate", "/resonate/*"],
    middleware: [limitTries(options.tries)],
    load: async () => {
      const { passOn } = await import("./proxy.ts");
      return (c) => passOn(c.req.raw, resonate, options);
    },
  },
];

/**
 * `rows` is called for each request, to which the platform binds the object that it reaches. `isOwnServer`: whether the account's own
 * Resonate server has the jobs.
 */
export const rowRoutes = (rows: () => CallerRows, isOwnServer: boolean, options: ProxyOptions): Route[] => [
  {
    methods: ["GET", "POST", "DELETE"],
    paths: ["/operate/callers"],
    middleware: [limitTries(options.tries)],
    load: async () => {
      const { serveRows } = await import("./proxy.ts");
      return (c) => serveRows(c.req.raw, rows(), isOwnServer, options);
    },
  },
];
