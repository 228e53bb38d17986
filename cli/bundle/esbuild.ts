import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { resolveModule } from "../package.ts";

let loaded: Promise<typeof import("esbuild")> | undefined;

/** Loads the copy of esbuild that wrangler uses. */
export function loadEsbuild(root: string): Promise<typeof import("esbuild")> {
  const load = async () => {
    const path = createRequire(resolveModule("wrangler/package.json", root)).resolve("esbuild");
    return (await import(pathToFileURL(path).href)).default;
  };
  loaded ??= load();
  return loaded;
}

/** Ends the process of esbuild, if there is one, when nothing more is built. */
export async function stopEsbuild(): Promise<void> {
  await (await loaded)?.stop();
}

/** A hash of the paths and contents of files; a missing file counts as empty. */
export function hashFiles(paths: readonly string[]): string {
  const sum = createHash("sha256");
  for (const path of paths) {
    const content = contentOf(path);
    sum.update(`${path}\0${content.length}\0`).update(content);
  }
  return sum.digest("hex");
}

/** Synchronous, because each start of an edge reads some 600 small files, and awaiting each takes five times as long. */
function contentOf(path: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch {
    return new Uint8Array();
  }
}
