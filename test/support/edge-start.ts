import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Bundle } from "../../cli/bundle/bundle.ts";

/** The modules of an edge that are loaded at its start: the main one, and what that imports statically. */
export async function edgeStart({ dir, main }: Pick<Bundle, "dir" | "main">): Promise<string[]> {
  const start = new Set<string>();
  const add = async (name: string): Promise<void> => {
    if (start.has(name)) return;
    start.add(name);
    const code = await readFile(join(dir, name), "utf8");
    // Minified code has no space before the name, and a dynamic import has a parenthesis.
    for (const [, imported = ""] of code.matchAll(/\b(?:from|import)"\.\/([\w-]+\.js)"/g)) await add(imported);
  };
  await add(main);
  return [...start];
}
