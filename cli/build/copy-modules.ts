import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Bundle, EDGE_MODULE } from "../bundle/bundle.ts";
import { put } from "../bundle/put.ts";

/** Copies the modules of a bundle into the folder `out`, and removes everything else from it. */
export async function copyModules({ dir, modules }: Pick<Bundle, "dir" | "modules">, out: string): Promise<void> {
  // The main module comes last: what it imports is there by then.
  const names = [...modules, EDGE_MODULE];
  for (const name of names) await put(out, name, await readFile(join(dir, name), "utf8"));
  const others = (await readdir(out)).filter((name) => !names.includes(name));
  for (const name of others) await rm(join(out, name), { recursive: true, force: true });
}
