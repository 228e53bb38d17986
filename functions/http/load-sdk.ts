import type * as sdk from "../sdk.ts";

export type Sdk = typeof sdk;

/** Set by `define` in wrangler.toml where the Worker has the SDK as a module. Elsewhere the bundle contains the SDK. */
declare const SDK_MODULE: string | undefined;

/** The SDK, loaded on demand: loading takes longer than everything else before an isolate's first response. */
export function loadSdk(): Promise<Sdk> {
  return typeof SDK_MODULE === "undefined" ? import("../sdk.ts") : load(SDK_MODULE);
}

/** Not a literal: the bundler would look for a file beside this one. */
const load = (module: string): Promise<Sdk> => import(module);
