/** Builds the pages and cards for browsers from `pages/` of a checkout. The package has the built files in `dist/pages`. */
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { extname, join } from "node:path";
import type { BuildOptions } from "esbuild";
import { isCheckout, thisPackage } from "../package.ts";
import { hashFiles, loadEsbuild } from "./esbuild.ts";

/** The output folder in a checkout, which wrangler.toml refers to. */
const OUT = ".build/pages";

const COPIED = [".svg", ".png"];

/** The pages, each a script within `page.html`, and their titles until the script runs. */
const PAGES = { index: "Durable MCP tools", jobs: "Jobs", job: "Jobs", operate: "Operate" };

/** The absolute folder of this package's pages; a checkout needs {@link buildPages} first. */
export const pagesFolder = (): string => join(thisPackage().root, isCheckout ? OUT : "dist/pages");

/**
 * Builds the pages of this checkout if their sources have changed. Returns the sources, absolute.
 *
 * @throws {Error} with esbuild's message, if they do not compile
 */
export async function buildPages(): Promise<string[]> {
  if (!isCheckout) return [];
  const { root } = thisPackage();
  const sources = await sourcesOf(root);
  const stamp = `${join(root, OUT)}.stamp`;
  const made = hashFiles([...sources, join(root, "package-lock.json"), import.meta.filename]);
  if (existsSync(join(root, OUT)) && (await readFile(stamp, "utf8").catch(() => "")) === made) return sources;
  await mkdir(join(root, ".build"), { recursive: true });
  const building = await mkdtemp(`${join(root, OUT)}-`);
  try {
    await writePages(root, building);
  } catch (error) {
    await rm(building, { recursive: true, force: true });
    throw error;
  }
  // Renamed, so that the folder is complete or absent. If another process was faster, its result is the same.
  const old = `${building}-old`;
  await rename(join(root, OUT), old).catch(() => {});
  await rename(building, join(root, OUT)).catch(() => rm(building, { recursive: true }));
  await rm(old, { recursive: true, force: true });
  await writeFile(stamp, made);
  return sources;
}

/** Builds the pages of the checkout at `root` into the folder `out`. */
export async function writePages(root: string, out: string): Promise<void> {
  const esbuild = await loadEsbuild(root);
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
  await writeFile(join(out, "card-chart.js"), await cardChart(esbuild, options(root)));
}

const options = (root: string): BuildOptions => ({
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

const FOLDER = "pages/card";

/** The program that draws charts in cards. @throws {Error} with esbuild's message, if it does not compile */
async function cardChart(esbuild: typeof import("esbuild"), options: BuildOptions): Promise<string> {
  const entryPoints = [`${FOLDER}/chart.ts`];
  const { outputFiles } = await esbuild.build({ ...options, format: "iife", entryPoints, write: false });
  return outputFiles?.[0]?.text ?? "";
}

/** @throws {Error} with esbuild's message, if the card does not compile */
async function cardOf(esbuild: typeof import("esbuild"), options: BuildOptions): Promise<string> {
  const built = await esbuild.build({
    ...options,
    entryPoints: [`${FOLDER}/main.tsx`, `${FOLDER}/card.css`],
    outdir: "out",
    write: false,
  });
  const textOf = (ending: string) => built.outputFiles?.find(({ path }) => path.endsWith(ending))?.text ?? "";
  const page = await readFile(join(options.absWorkingDir ?? "", FOLDER, "card.html"), "utf8");
  return page
    .replace("<style></style>", () => `<style>${textOf(".css")}</style>`)
    .replace('<script type="module"></script>', () => `<script type="module">${textOf(".js")}</script>`);
}
