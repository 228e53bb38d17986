/**
 * Builds the modules that a Worker loads when it needs them, beside the one that it evaluates at its start: wrangler
 * attaches them as they are.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { builtinModules, createRequire } from "node:module";
import { extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { isCheckout, resolveModule, thisPackage } from "../package.ts";

/** Where they lie in a checkout, and in a project; wrangler.toml and the edge name them. */
const OWN = "functions/modules";
const PROJECT = "edge/modules";

/** The command by which wrangler has them built: of a checkout, and of a project. */
export const isBuild = (command: string | undefined): boolean =>
  /^node \S*cli\/build\/build\.[jt]s$/.test(command ?? "");

/** What each is made of in a checkout. In a project it is what lies beside it, in TypeScript. */
const ENTRIES: Readonly<Record<string, string>> = {
  "resonate.js": 'export { ObjectServer } from "./server/object/object-server.ts";',
  "sdk.js": 'export * from "./functions/sdk.ts";',
  "runner.js": `import { runs } from "./tools/runs.ts";
import { RunnerServer } from "./worker/runner/runner-server.ts";
export const createRunner = (env) => new RunnerServer(env, runs);`,
};

/** What the SDK takes from its platform: `functions/mcp/shims.ts`. */
const SHIMS = join(import.meta.dirname, "../../functions/mcp", `shims${extname(import.meta.filename)}`);

/** In `.build`: what the modules were last built from, and the sum of it. Every process that starts an edge asks for them. */
const STAMP = "modules.json";

interface Modules {
  /** The folder, from the root. */
  readonly folder: string;
  /** What each is made of, by its file's name. */
  readonly entries: Readonly<Record<string, string>>;
}

async function modulesOf(root: string): Promise<Modules> {
  if (isCheckout && root === thisPackage().root) return { folder: OWN, entries: ENTRIES };
  const files = await readdir(join(root, PROJECT)).catch(() => []);
  const names = files
    .filter((name) => name.endsWith(".ts") && !name.endsWith(".d.ts"))
    .map((name) => name.slice(0, -3));
  const entries = names.map((name) => [`${name}.js`, `export * from "./${PROJECT}/${name}.ts";`] as const);
  return { folder: PROJECT, entries: Object.fromEntries(entries) };
}

/**
 * Builds the modules of the project at `root`, unless they are built from what is there; many a project has none. Returns
 * their sources, absolute.
 *
 * @throws {Error} with what esbuild says, when they do not compile
 */
export async function buildModules(root: string): Promise<string[]> {
  const modules = await modulesOf(root);
  const names = Object.keys(modules.entries);
  if (names.length === 0) return [];
  const known = await readFile(join(root, ".build", STAMP), "utf8").then(JSON.parse, () => undefined);
  const isThere = names.every((name) => existsSync(join(root, modules.folder, name)));
  if (isThere && known && (await sumOf(root, known.sources)) === known.sum) return known.sources;
  const started = Date.now();
  const sources = await build(root, modules);
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

async function build(root: string, { folder, entries }: Modules): Promise<string[]> {
  // Of wrangler's, as for the edge.
  const path = createRequire(resolveModule("wrangler/package.json", root)).resolve("esbuild");
  const esbuild: typeof import("esbuild") = (await import(pathToFileURL(path).href)).default;
  const sources = new Set<string>();
  for (const [name, contents] of Object.entries(entries)) {
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
      alias: { "@modelcontextprotocol/server/_shims": SHIMS },
      // What imports them is built, so that all else can be served, and says what it lacks when it is loaded.
      external: ["cloudflare:*", "node:*", ...builtinModules],
      legalComments: "none",
      logLevel: "silent",
    });
    await put(join(root, folder), name, outputFiles[0]?.text ?? "");
    // Neither the entry, which is no file, nor what stands for modules of Node.
    const isSource = (path: string) => path !== name && !/node_modules\/|^\(disabled\)/.test(path);
    const inputs = Object.keys(metafile.inputs).filter(isSource);
    for (const path of inputs) sources.add(join(root, path));
  }
  return [...sources].sort();
}

/** Copies the modules to where a bundle in `dir` finds them. Returns their paths from there. */
export async function copyModules(root: string, dir: string): Promise<string[]> {
  const { folder, entries } = await modulesOf(root);
  const names = Object.keys(entries);
  for (const name of names) await put(join(dir, "modules"), name, await readFile(join(root, folder, name), "utf8"));
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
