/**
 * Builds the modules that a Worker loads when it needs them, beside the one that it evaluates at its start: wrangler
 * attaches them as they are.
 */
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
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

/** Builds the modules of the checkout at `root`; does nothing for another project. Returns their sources, absolute. */
export async function buildModules(root: string): Promise<string[]> {
  if (!isCheckout || root !== thisPackage().root) return [];
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
    const inputs = Object.keys(metafile.inputs).filter((path) => path !== name && !path.includes("node_modules/"));
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
