/**
 * Builds the modules that a Worker loads when it needs them, beside the one that it evaluates at its start: wrangler
 * attaches them as they are.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { isCheckout, resolveModule, thisPackage } from "../launcher/package.ts";

/** Where they lie, and how wrangler.toml and the edge name them. */
export const MODULES = "functions/modules";

/** The command by which wrangler has them built. */
export const BUILD = "node infra/modules/main.ts";

/** What each is made of. */
const ENTRIES: Readonly<Record<string, string>> = {
  "resonate.js": 'export { ObjectServer } from "./infra/resonate/object/server.ts";',
  "runner.js": `import { runs } from "./tools/runs.ts";
import { RunnerServer } from "./infra/runner/server.ts";
export const createRunner = (env) => new RunnerServer(env, runs);`,
};

/** In `.build`: what the modules were last built from, and the sum of it. Every process that starts an edge asks for them. */
const STAMP = "modules.json";

/**
 * Builds the modules of the checkout at `root`, unless they are built from what is there; does nothing for another
 * project. Returns their sources, absolute.
 */
export async function buildModules(root: string): Promise<string[]> {
  if (!isCheckout || root !== thisPackage().root) return [];
  const known = await readFile(join(root, ".build", STAMP), "utf8").then(JSON.parse, () => undefined);
  const isThere = Object.keys(ENTRIES).every((name) => existsSync(join(root, MODULES, name)));
  if (isThere && known && (await sumOf(root, known.sources)) === known.sum) return known.sources;
  const started = Date.now();
  const sources = await build(root);
  const sum = await sumOf(root, sources);
  // What was written meanwhile may not be in what was built.
  const times = await Promise.all(sources.map((source) => stat(source).then(({ mtimeMs }) => mtimeMs)));
  if (Math.max(...times) < started) await put(join(root, ".build"), STAMP, JSON.stringify({ sources, sum }));
  return sources;
}

/** Of the files, and of what decides the dependencies. */
async function sumOf(root: string, sources: readonly string[]): Promise<string> {
  const sum = createHash("sha256");
  for (const path of [...sources, join(root, "package-lock.json"), import.meta.filename]) {
    const content = await readFile(path).catch(() => "");
    sum.update(`${path}\0${content.length}\0`).update(content);
  }
  return sum.digest("hex");
}

async function build(root: string): Promise<string[]> {
  // Of wrangler's, as for the edge.
  const path = createRequire(resolveModule("wrangler/package.json", root)).resolve("esbuild");
  const esbuild: typeof import("esbuild") = (await import(pathToFileURL(path).href)).default;
  const sources = new Set<string>();
  for (const [name, contents] of Object.entries(ENTRIES)) {
    const { outputFiles, metafile } = await esbuild.build({
      absWorkingDir: root,
      stdin: { contents, resolveDir: root, sourcefile: name },
      bundle: true,
      write: false,
      minify: true,
      metafile: true,
      format: "esm",
      target: "es2024",
      conditions: ["workerd", "worker", "browser"],
      external: ["cloudflare:*", "node:*"],
      legalComments: "none",
      logLevel: "silent",
    });
    await put(join(root, MODULES), name, outputFiles[0]?.text ?? "");
    // Neither the entry, which is no file, nor what stands for modules of Node.
    const isSource = (path: string) => path !== name && !/node_modules\/|^\(disabled\)/.test(path);
    const inputs = Object.keys(metafile.inputs).filter(isSource);
    for (const path of inputs) sources.add(join(root, path));
  }
  return [...sources].sort();
}

/** Copies the modules to where a bundle in `dir` finds them. Returns their paths from there. */
export async function copyModules(root: string, dir: string): Promise<string[]> {
  if (!isCheckout || root !== thisPackage().root) return [];
  const names = Object.keys(ENTRIES);
  for (const name of names) await put(join(dir, "modules"), name, await readFile(join(root, MODULES, name), "utf8"));
  return names.map((name) => `modules/${name}`);
}

/** Writes a file whole or not at all, and leaves one that is the same as it is: others may be watching it. */
export async function put(dir: string, name: string, text: string): Promise<void> {
  const file = join(dir, name);
  if ((await readFile(file, "utf8").catch(() => "")) === text) return;
  await mkdir(dir, { recursive: true });
  await writeFile(`${file}.${process.pid}`, text);
  await rename(`${file}.${process.pid}`, file);
}
