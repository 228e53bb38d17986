/** Builds what browsers load, pages and cards, from `pages/` of a checkout. The package brings it built, in `dist/pages`. */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import type { BuildOptions } from "esbuild";
import { isCheckout, resolveModule, thisPackage } from "../package.ts";
import { readProject } from "../project.ts";
import { cardOf } from "./card.ts";

/** Where they lie in a checkout; wrangler.toml names it. */
const OUT = ".build/pages";

/** What is copied as it is. */
const COPIED = [".svg", ".png"];

/** The pages, each a script of its own in the frame that is `page.html`, and what they are called until that runs. */
const PAGES = { index: "Durable MCP tools", jobs: "Jobs", job: "Jobs" };

/** Where the pages of this package lie, absolute; of a checkout once {@link buildPages} has built them. */
export const pagesFolder = (): string => join(thisPackage().root, isCheckout ? OUT : "dist/pages");

/**
 * Builds the pages of this checkout, and of a copy of it at `root`, unless they are built from these sources; the package
 * brings them built. Returns the sources, absolute.
 *
 * @throws {Error} with what esbuild says, when they do not compile
 */
export async function buildPages(root: string): Promise<string[]> {
  if (!isCheckout) return [];
  const own = thisPackage().root;
  const isCopy =
    root !== own && existsSync(join(root, "pages/style.css")) && readProject(root).name === readProject(own).name;
  return (await Promise.all([own, ...(isCopy ? [root] : [])].map(buildOf))).flat();
}

async function buildOf(root: string): Promise<string[]> {
  const sources = await sourcesOf(root);
  const stamp = `${join(root, OUT)}.stamp`;
  const made = await hashOf([...sources, join(root, "package-lock.json")]);
  if (existsSync(join(root, OUT)) && (await readFile(stamp, "utf8").catch(() => "")) === made) return sources;
  await mkdir(join(root, ".build"), { recursive: true });
  const building = `${join(root, OUT)}-${process.pid}`;
  await writePages(root, building);
  // Whole or not at all; when another process was first, what it built is as good.
  const old = `${building}-old`;
  await rename(join(root, OUT), old).catch(() => {});
  await rename(building, join(root, OUT)).catch(() => rm(building, { recursive: true }));
  await rm(old, { recursive: true, force: true });
  await writeFile(stamp, made);
  return sources;
}

/** Builds the pages of the checkout at `root` into the folder `out`. */
export async function writePages(root: string, out: string): Promise<void> {
  // Of wrangler's, as for the edge.
  const path = createRequire(resolveModule("wrangler/package.json", root)).resolve("esbuild");
  const esbuild: typeof import("esbuild") = (await import(pathToFileURL(path).href)).default;
  await rm(out, { recursive: true, force: true });
  await mkdir(out, { recursive: true });
  const names = await readdir(join(root, "pages"));
  for (const name of names.filter((name) => COPIED.includes(extname(name)))) {
    await cp(join(root, "pages", name), join(out, name));
  }
  const frame = await readFile(join(root, "pages/page.html"), "utf8");
  for (const [script, title] of Object.entries(PAGES)) {
    await writeFile(join(out, `${script}.html`), frame.replace("{{title}}", title).replace("{{script}}", script));
  }
  const entryPoints = [...Object.keys(PAGES).map((script) => `pages/${script}.tsx`), "pages/style.css"];
  await esbuild.build({ ...options(root), entryPoints, splitting: true, outdir: out });
  await writeFile(join(out, "card.html"), await cardOf(esbuild, options(root)));
}

/** How everything that a browser runs is built. */
export const options = (root: string): BuildOptions => ({
  absWorkingDir: root,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  chunkNames: "chunk-[hash]",
  jsx: "automatic",
  jsxImportSource: "hono/jsx/dom",
  legalComments: "none",
  logLevel: "silent",
});

async function sourcesOf(root: string): Promise<string[]> {
  const entries = await readdir(join(root, "pages"), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !entry.name.endsWith(".test.ts"));
  return files.map((entry) => join(entry.parentPath, entry.name)).sort();
}

async function hashOf(paths: readonly string[]): Promise<string> {
  const sum = createHash("sha256");
  for (const path of [...paths, import.meta.filename, join(import.meta.dirname, "card.ts")]) {
    const content = await readFile(path).catch(() => "");
    sum.update(`${path}\0${content.length}\0`).update(content);
  }
  return sum.digest("hex");
}
