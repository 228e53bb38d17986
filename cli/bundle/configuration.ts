import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import { resolveModule } from "../package.ts";

/** The part of a wrangler configuration that the command line reads. */
export interface Configuration {
  name?: string;
  account_id?: string;
  main?: string;
  no_bundle?: boolean;
  compatibility_date?: string;
  compatibility_flags: string[];
  vars: Record<string, unknown>;
  durable_objects?: { bindings?: { name: string; class_name: string; script_name?: string }[] };
  assets?: { directory?: string; binding?: string };
  alias?: Record<string, string>;
  define?: Record<string, string>;
}

export async function readConfiguration(config: string): Promise<Configuration> {
  return (await wranglerFor(config)).unstable_readConfig({ config });
}

/** Reads a wrangler configuration as it is written, without wrangler's defaults. */
export async function readRaw<Raw>(config: string): Promise<Raw> {
  return (await wranglerFor(config)).experimental_readRawConfig({ config }).rawConfig;
}

/**
 * Refuses a server without the objects of its callers, which count, list and schedule their jobs. `bindings`: the names of the
 * bound classes of Durable Objects.
 *
 * @throws {Error} with what is missing in the configuration
 */
export function requireCallers(bindings: readonly string[]): void {
  if (bindings.includes("CALLER")) return;
  throw new Error(
    "The wrangler configuration binds no CALLER, the objects that count and list the jobs of callers. Add to wrangler.toml:\n\n" +
      '[[durable_objects.bindings]]\nname = "CALLER"\nclass_name = "CallerObject"\n\n' +
      "Add the class to new_sqlite_classes of a migration, and export it beside the edge: " +
      'export { CallerObject } from "durable-mcp-edge/edge".',
  );
}

/** Wrangler, loaded on demand: that takes most of a second. */
const wranglerFor = (config: string) => import(pathToFileURL(resolveModule("wrangler", dirname(config))).href);
