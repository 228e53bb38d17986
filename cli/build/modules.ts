/** Builds the modules that a Worker loads on demand. Wrangler uploads them unchanged beside the main module. */
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { builtinModules } from "node:module";
import { dirname, extname, join, relative } from "node:path";
import type { EncodedSourceMap, SourceMapSegment } from "@jridgewell/trace-mapping";
import type { Plugin } from "esbuild";
import { isCheckout, thisPackage } from "../package.ts";
import { hashFiles, loadEsbuild } from "./esbuild.ts";

/** The folders of the modules in a checkout and in a project. wrangler.toml and the edge refer to them. */
const OWN = "functions/modules";
const PROJECT = "edge/modules";

/** Whether a wrangler configuration's build command runs `build.ts`. */
export const isBuild = (command: string | undefined): boolean =>
  /^node \S*cli\/build\/build\.[jt]s$/.test(command ?? "");

/** The module with `cron-parser`, which other modules import. */
const CRON = "cron.js";

/** The entry code of each module in a checkout. In a project it is the TypeScript file beside the module. */
export const ENTRIES = {
  "caller.js": 'export * from "./functions/lazy.ts";',
  [CRON]: 'export { CronExpressionParser } from "cron-parser"; export * from "./features/schedules/times.ts";',
  "resonate.js": 'export { ObjectServer } from "./server/object/object-server.ts";',
  "sdk.js": 'export * from "./functions/sdk.ts";',
  "runner.js": `import { runs } from "./tools/runs.ts";
import { RunnerServer } from "./worker/runner/runner-server.ts";
export const createRunner = (env) => new RunnerServer(env, runs);`,
};

/** Replaces the SDK's platform shims. */
const SHIMS = join(import.meta.dirname, "../../functions/mcp", `shims${extname(import.meta.filename)}`);

/** The file in `.build` with the sources, their hash and the files of the last build, since every start asks for a build. */
const STAMP = "modules.json";

interface Modules {
  /** The folder, from the root. */
  readonly folder: string;
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
 * Builds the modules of the project at `root`, if it has any and their sources have changed. Returns the sources, absolute.
 *
 * @throws {Error} with esbuild's message, if they do not compile
 */
export async function buildModules(root: string): Promise<string[]> {
  const modules = await modulesOf(root);
  const names = Object.keys(modules.entries);
  if (names.length === 0) return [];
  const output = { folder: join(root, modules.folder), names };
  return (await buildIfChanged(root, STAMP, output, () => build(root, modules))).sources;
}

/** What a build has read and written: absolute paths of sources, and files in the output folder. */
interface Made {
  sources: string[];
  files: string[];
}

/**
 * Builds unless the output is that of the same sources. `stamp`: the file in `.build` that records the last build. Returns the
 * sources, absolute, and whether it has built.
 */
export async function buildIfChanged(
  root: string,
  stamp: string,
  { folder, names }: { folder: string; names: readonly string[] },
  build: () => Promise<Made>,
): Promise<{ sources: string[]; isNew: boolean }> {
  const sumOf = (sources: readonly string[]) =>
    hashFiles([...sources, join(root, "package-lock.json"), import.meta.filename]);
  const known: (Made & { sum: string }) | undefined = await readFile(join(root, ".build", stamp), "utf8").then(
    JSON.parse,
    () => undefined,
  );
  // The known files include the shared chunks, which a folder that was copied during a build may lack.
  const isThere = [...names, ...(known?.files ?? [])].every((name) => existsSync(join(folder, name)));
  if (isThere && known && sumOf(known.sources) === known.sum) return { sources: known.sources, isNew: false };
  const started = Date.now();
  const made = await build();
  const sum = sumOf(made.sources);
  const times = await Promise.all(made.sources.map((source) => stat(source).then(({ mtimeMs }) => mtimeMs)));
  // A build may lack a change that was made while it ran.
  if (Math.max(...times) < started) await put(join(root, ".build"), stamp, JSON.stringify({ ...made, sum }));
  return { sources: made.sources, isNew: true };
}

async function build(root: string, { folder, entries }: Modules): Promise<Made> {
  const cronAt = CRON in entries ? `./${CRON}` : undefined;
  // The modules of Durable Objects share much code, which goes into common chunks. Each other module is a single file.
  const isObject = (name: string) => OBJECTS.includes(name);
  const all = Object.entries(entries);
  const bundles = await Promise.all([
    bundleModules(root, Object.fromEntries(all.filter(([name]) => isObject(name))), { cronAt }),
    ...all
      .filter(([name]) => !isObject(name))
      .map(([name, code]) => bundleModules(root, { [name]: code }, name === CRON ? {} : { cronAt })),
  ]);
  const stacks = RUNNER in entries && (await bundleStacks(root, bundles[0].maps));
  if (stacks) bundles.push(stacks);
  const files = new Map(bundles.flatMap((bundle) => [...bundle.files]));
  for (const [name, text] of files) await put(join(root, folder), name, text);
  const others = await readdir(join(root, folder));
  const old = others.filter((name) => name.startsWith(CHUNK) && !files.has(name));
  await Promise.all(old.map((name) => rm(join(root, folder, name), { force: true })));
  return { sources: [...new Set(bundles.flatMap(({ sources }) => sources))].sort(), files: [...files.keys()] };
}

const RUNNER = "runner.js";
const OBJECTS = ["caller.js", "resonate.js", RUNNER];

/** The module that replaces the locations in a runner's stacks by lines of the sources. */
const STACKS = "stacks.js";

/** Bundles {@link STACKS}: `source-lines.ts` with the source maps of the runner and of its imports. */
function bundleStacks(root: string, maps: Readonly<Record<string, object>>) {
  const from = JSON.stringify(
    join(import.meta.dirname, `../../worker/runner/source-lines${extname(import.meta.filename)}`),
  );
  const code = `import { sourceLines } from ${from}; export const inSources = sourceLines(${JSON.stringify(maps)});`;
  return bundleModules(root, { [STACKS]: code });
}

/** The beginning of the names of files with shared code. */
const CHUNK = "chunk-";

interface ModuleOptions {
  define?: Record<string, string> | undefined;
  /** The path from which the code imports `cron-parser`. Default: the library is bundled with the code. */
  cronAt?: string | undefined;
}

/** Leaves `cron-parser` out of a bundle, which imports it from the module `path` instead. */
const cronFrom = (path: string): Plugin => ({
  name: "cron",
  setup({ onResolve }) {
    onResolve({ filter: /^cron-parser$/ }, () => ({ path, external: true }));
  },
});

/**
 * Bundles modules for a Worker. `entries` holds the code of each by its file name; its imports are relative to `root`. Code
 * that several entries need goes into further files, which they import. Returns the texts and source maps by file name, and
 * the absolute paths of the sources.
 *
 * @throws {Error} with esbuild's message, if they do not compile
 */
export async function bundleModules(
  root: string,
  entries: Readonly<Record<string, string>>,
  { define = {}, cronAt }: ModuleOptions = {},
): Promise<{ files: Map<string, string>; sources: string[]; maps: Record<string, EncodedSourceMap> }> {
  const names = Object.keys(entries);
  if (names.length === 0) return { files: new Map(), sources: [], maps: {} };
  const esbuild = await loadEsbuild(root);
  const { outputFiles, metafile } = await esbuild.build({
    absWorkingDir: root,
    entryPoints: names.map((name) => ({ in: `entry:${name}`, out: name.slice(0, -".js".length) })),
    plugins: [entered(entries, root), ...(cronAt === undefined ? [] : [cronFrom(cronAt)])],
    bundle: true,
    splitting: names.length > 1,
    chunkNames: `${CHUNK}[hash]`,
    outdir: root,
    write: false,
    minify: true,
    // The error classes of a definition are stored by their names.
    keepNames: names.includes(RUNNER),
    sourcemap: names.includes(RUNNER) && "external",
    sourcesContent: false,
    metafile: true,
    format: "esm",
    target: "es2024",
    conditions: ["workerd", "worker", "browser"],
    alias: { "@modelcontextprotocol/server/_shims": SHIMS },
    define: { ...define, STACKS_MODULE: `"./${STACKS}"` },
    // A Node module that workerd lacks fails only when it is loaded, so that the rest of the module works.
    external: ["cloudflare:*", "node:*", ...builtinModules],
    legalComments: "none",
    logLevel: "silent",
  });
  // Entries and placeholders of Node modules are not files.
  const isSource = (path: string) => !/^entry:|node_modules\/|^\(disabled\)/.test(path);
  const inputs = Object.keys(metafile.inputs).filter(isSource);
  const nameOf = (path: string) => relative(root, path);
  const mapOf = async ({ path, text }: { path: string; text: string }) => {
    const map = await authorsLines(root, JSON.parse(text));
    return map ? [[nameOf(path).slice(0, -".map".length), map] as const] : [];
  };
  const isMap = ({ path }: { path: string }) => path.endsWith(".map");
  return {
    files: new Map(outputFiles.filter((file) => !isMap(file)).map(({ path, text }) => [nameOf(path), text])),
    sources: inputs.map((path) => join(root, path)),
    maps: Object.fromEntries((await Promise.all(outputFiles.filter(isMap).map(mapOf))).flat()),
  };
}

/**
 * Reduces a source map to the lines of the author's files: with columns, and with the files of the engine and the libraries,
 * it would be twenty times as large. Undefined if it has no such files.
 */
async function authorsLines(root: string, map: EncodedSourceMap): Promise<EncodedSourceMap | undefined> {
  const { decodedMappings, encodedMappings, TraceMap } = await import("@jridgewell/trace-mapping");
  const own = thisPackage().root;
  const isAuthors = (source: string) => {
    const inOwn = relative(own, join(root, source));
    return !/(^|\/)node_modules\//.test(source) && (inOwn.startsWith("..") || inOwn.startsWith("tools/"));
  };
  const sources = map.sources.map((source) => source ?? "").filter(isAuthors);
  if (sources.length === 0) return undefined;
  const nth = map.sources.map((source) => sources.indexOf(source ?? ""));
  const renumbered = ([column, source = -1, line = 0]: SourceMapSegment): SourceMapSegment => {
    const of = nth[source] ?? -1;
    return of < 0 ? [column] : [column, of, line, 0];
  };
  const isNext = ([, ...to]: SourceMapSegment, i: number, all: SourceMapSegment[]) =>
    i === 0 || `${to}` !== `${all[i - 1]?.slice(1)}`;
  const lines = decodedMappings(new TraceMap(map)).map((segments) => segments.map(renumbered).filter(isNext));
  const head = { version: 3 as const, names: [], sources };
  return { ...head, mappings: encodedMappings(new TraceMap({ ...head, mappings: lines })) };
}

/** Provides the entries' code to esbuild as modules in the folder `root`. */
const entered = (entries: Readonly<Record<string, string>>, root: string): Plugin => ({
  name: "entries",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^entry:/ }, ({ path }) => ({ path: path.slice("entry:".length), namespace: "entry" }));
    onLoad({ filter: /./, namespace: "entry" }, ({ path }) => ({ contents: entries[path] ?? "", resolveDir: root }));
  },
});

/** Copies the modules into the bundle folder `dir`. Returns their paths relative to it. */
export async function copyModules(root: string, dir: string): Promise<string[]> {
  const { folder } = await modulesOf(root);
  const files = await readdir(join(root, folder)).catch(() => []);
  const names = files.filter((name) => name.endsWith(".js")).sort();
  for (const name of names) await put(join(dir, "modules"), name, await readFile(join(root, folder, name), "utf8"));
  return names.map((name) => `modules/${name}`);
}

/** Writes a file atomically, and only if it differs: other processes may watch it. */
export async function put(dir: string, name: string, text: string): Promise<void> {
  const file = join(dir, name);
  if ((await readFile(file, "utf8").catch(() => "")) === text) return;
  const draft = `${file}.${randomUUID()}`;
  await mkdir(dirname(file), { recursive: true });
  await writeFile(draft, text);
  await rename(draft, file);
}
