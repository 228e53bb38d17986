/**
 * Finds the programs of this package and of its dependencies. It searches from this file, never from the working
 * directory, which is the project's.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";

const HERE = import.meta.dirname;

/** The file of a program of this package, by its path from the root without the extension: `.ts` in a checkout, else `.js`. */
export function programPath(path: string): string {
  return join(HERE, "..", path + extname(import.meta.filename));
}

/** Resolves a module from this package, or else from the project at `root`. @throws {Error} that names what to install */
export function resolveModule(specifier: string, root: string): string {
  for (const from of [import.meta.url, join(root, "package.json")]) {
    try {
      return createRequire(from).resolve(specifier);
    } catch {
      // Try the next place.
    }
  }
  const name = specifier.split("/")[0];
  throw new Error(`${name} is not installed. Type: npm install --save-dev ${name}`);
}

/** The program of the wrangler that the project at `root` uses. @throws {Error} if it is not installed */
export const wranglerProgram = (root: string): string =>
  join(dirname(resolveModule("wrangler/package.json", root)), "bin/wrangler.js");

/** The part of this package's `package.json` that the command line reads. */
interface Manifest {
  version: string;
  /** The version of Node for tests and containers. */
  config: { node: string };
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
}

/** The folder of this package, and its `package.json`. */
export function thisPackage(): { root: string; manifest: Manifest } {
  for (let root = HERE; root !== dirname(root); root = dirname(root)) {
    try {
      const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
      if (typeof manifest.version === "string") return { root, manifest };
    } catch {
      // Try the parent folder.
    }
  }
  throw new Error("this package has no package.json");
}

export const packageVersion = (): string => thisPackage().manifest.version;

/** Whether this is a checkout with sources, not the installed package. */
export const isCheckout = extname(import.meta.filename) === ".ts";

/** The folder of Node's compile cache for this process and its children. */
export const COMPILE_CACHE = join(thisPackage().root, ".build/compile-cache");
