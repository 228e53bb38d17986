import type * as order from "./order.ts";

type Order = Pick<typeof order, "positionIn">;

/** Set by `define` in wrangler.toml when the Worker has `order.ts` in a separate module. Otherwise the bundle contains it. */
declare const CALLER_MODULE: string | undefined;

/** Loads `order.ts` on demand, as only starts of kinds with a concurrency key need it. */
export const loadOrder = (): Promise<Order> =>
  typeof CALLER_MODULE === "undefined" ? import("./order.ts") : load(CALLER_MODULE);

/** The argument is not a literal, as the bundler would look for such a file beside this one. */
const load = (module: string): Promise<Order> => import(module);
