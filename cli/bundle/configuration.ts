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

/** Wrangler, loaded on demand: that takes most of a second. */
const wranglerFor = (config: string) => import(pathToFileURL(resolveModule("wrangler", dirname(config))).href);
