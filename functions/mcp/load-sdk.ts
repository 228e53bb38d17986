export type Sdk = typeof import("../sdk.ts");

/** By `define` in wrangler.toml: where the Worker has the SDK as a module. Elsewhere it is a part of the bundle. */
declare const SDK_MODULE: string | undefined;

/** The SDK, which most requests do without: to load it takes longer than everything else before an isolate's first answer. */
export function loadSdk(): Promise<Sdk> {
  return typeof SDK_MODULE === "undefined" ? import("../sdk.ts") : load(SDK_MODULE);
}

/** Not as a literal, which to the bundler would be a file beside this one. */
const load = (module: string): Promise<Sdk> => import(module);
