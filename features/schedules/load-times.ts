import type * as times from "./times.ts";

type Times = typeof times;

/** Set by `define` in wrangler.toml where the Worker has this code and its library as a module. Elsewhere the bundle contains it. */
declare const CRON_MODULE: string | undefined;

/** Loads the code that computes the times of schedules, which only schedules need. */
export function loadTimes(): Promise<Times> {
  return typeof CRON_MODULE === "undefined" ? import("./times.ts") : load(CRON_MODULE);
}

/** Not a literal: the bundler would look for a file beside this one. */
const load = (module: string): Promise<Times> => import(module);
