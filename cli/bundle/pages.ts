/** Builds the pages and cards for browsers from `pages/` of a checkout. The package has the built files in `dist/pages`. */
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { extname, join } from "node:path";
import type { BuildOptions, BuildResult } from "esbuild";
import { isCheckout, thisPackage } from "../package.ts";
import { hashFiles, loadEsbuild } from "./esbuild.ts";

/** The output folder in a checkout, which wrangler.toml refers to. */
const OUT = ".build/pages";

/** The folder of the card's sources. */
const CARD = "pages/card";

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

/** Builds the pages of the checkout at `root` into the folder `out`. @throws {Error} with esbuild's message */
export async function writePages(root: string, out: string): Promise<void> {
  const { build } = await loadEsbuild(root);
  const bundle = (more: BuildOptions) => build({ ...OPTIONS, absWorkingDir: root, ...more });
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
  await bundle({ entryPoints, splitting: true, outdir: out });
  const card = await bundle({ entryPoints: [`${CARD}/main.tsx`, `${CARD}/card.css`], write: false, outdir: "out" });
  const page = await readFile(join(root, CARD, "card.html"), "utf8");
  const html = page
    .replace("<style></style>", () => `<style>${textOf(card, ".css")}</style>`)
    .replace('<script type="module"></script>', () => `<script type="module">${textOf(card, ".js")}</script>`);
  await writeFile(join(out, "card.html"), html);
  // The program that draws charts in cards.
  const chart = await bundle({ entryPoints: [`${CARD}/chart.ts`], write: false, outdir: "out", format: "iife" });
  await writeFile(join(out, "card-chart.js"), textOf(chart, ".js"));
}

const textOf = ({ outputFiles = [] }: BuildResult, ending: string): string =>
  outputFiles.find(({ path }) => path.endsWith(ending))?.text ?? "";

const OPTIONS: BuildOptions = {
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  chunkNames: "chunk-[hash]",
  jsx: "automatic",
  jsxImportSource: "hono/jsx/dom",
  legalComments: "none",
  logLevel: "silent",
};

async function sourcesOf(root: string): Promise<string[]> {
  const entries = await readdir(join(root, "pages"), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !entry.name.endsWith(".test.ts"));
  return files.map((entry) => join(entry.parentPath, entry.name)).sort();
}
