import type * as order from "./order.ts";

type Order = Pick<typeof order, "takePosition">;

/** Set by `define` in wrangler.toml where the Worker has this code as a module. Elsewhere the bundle contains it. */
declare const CALLER_MODULE: string | undefined;

/** Only starts of kinds with a key need it: the edge loads it then. */
export const loadOrder = (): Promise<Order> =>
  typeof CALLER_MODULE === "undefined" ? import("./order.ts") : load(CALLER_MODULE);

/** Not a literal: the bundler would look for a file beside this one. */
const load = (module: string): Promise<Order> => import(module);
