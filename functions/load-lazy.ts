/** The check for import cycles sees this import, so the lazily loaded code never imports this file. */
import type * as lazy from "./lazy.ts";

type Lazy = typeof lazy;

/** Set by `define` in wrangler.toml where the Worker has this code as a module. Elsewhere the bundle contains it. */
declare const CALLER_MODULE: string | undefined;

export const loadLazy = (): Promise<Lazy> =>
  typeof CALLER_MODULE === "undefined" ? import("./lazy.ts") : load(CALLER_MODULE);

/** Not a literal: the bundler would look for a file beside this one. */
const load = (module: string): Promise<Lazy> => import(module);
