import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { resolveModule } from "../package.ts";

/** Loads the copy of esbuild that wrangler uses, so that all parts of the edge are built alike. */
export async function loadEsbuild(root: string): Promise<typeof import("esbuild")> {
  const path = createRequire(resolveModule("wrangler/package.json", root)).resolve("esbuild");
  return (await import(pathToFileURL(path).href)).default;
}

/** A hash of the paths and contents of files; a missing file counts as empty. */
export async function hashFiles(paths: readonly string[]): Promise<string> {
  const sum = createHash("sha256");
  for (const path of paths) {
    const content = await readFile(path).catch(() => "");
    sum.update(`${path}\0${content.length}\0`).update(content);
  }
  return sum.digest("hex");
}
