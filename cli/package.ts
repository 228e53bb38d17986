/**
 * Where this package's own programs are, and the programs of the packages that it brings: looked for from this file, and
 * never in the folder that a command is run in, which is the project's.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";

const HERE = import.meta.dirname;

/** A program of this package by its path from the root, without extension: `.ts` in a checkout, `.js` as it ships. */
export function programPath(path: string): string {
  return join(HERE, "..", path + extname(import.meta.filename));
}

/**
 * A module that a package exports: this package's copy of it, or else the one of the project at `root`.
 *
 * @throws {Error} saying what to install
 */
export function resolveModule(specifier: string, root: string): string {
  for (const from of [import.meta.url, join(root, "package.json")]) {
    try {
      return createRequire(from).resolve(specifier);
    } catch {
      // Not there: further on.
    }
  }
  const name = specifier.split("/")[0];
  throw new Error(`${name} is not installed. Type: npm install --save-dev ${name}`);
}

/** What this package says of itself. */
export interface Manifest {
  version: string;
  /** The version of Node that it is tested with. */
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
      // Not here: further up.
    }
  }
  throw new Error("this package has no package.json");
}

/** The version of this package. */
export const packageVersion = (): string => thisPackage().manifest.version;

/** Whether this is a checkout, with sources, and not the package as it is installed. */
export const isCheckout = extname(import.meta.filename) === ".ts";

/** Where Node keeps the code of programs that it has compiled, here and in the processes started from here. */
export const COMPILE_CACHE = join(thisPackage().root, ".build/compile-cache");
