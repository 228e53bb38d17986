import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import { resolveModule } from "../package.ts";

/** The part of a wrangler configuration that the command line reads. */
export interface Configuration {
  name?: string;
  account_id?: string;
  main?: string;
  minify?: boolean;
  keep_names?: boolean;
  compatibility_date?: string;
  compatibility_flags: string[];
  vars: Record<string, unknown>;
  durable_objects?: { bindings?: { name: string; class_name: string; script_name?: string }[] };
  assets?: { directory?: string; binding?: string };
  alias?: Record<string, string>;
  define?: Record<string, string>;
  rules?: { type: string }[];
  build?: { command?: string };
}

export async function readConfiguration(config: string): Promise<Configuration> {
  // Loaded on demand: loading wrangler takes most of a second.
  const url = pathToFileURL(resolveModule("wrangler", dirname(config))).href;
  const { unstable_readConfig } = await import(url);
  return unstable_readConfig({ config });
}
