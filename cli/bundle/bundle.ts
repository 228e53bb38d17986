import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { programPath } from "../package.ts";
import { configurationOf, edgeOf, readProject } from "../project.ts";
import { type Configuration, readConfiguration } from "./configuration.ts";
import { edgeOptions } from "./edge-options.ts";
import { hashFiles, loadEsbuild } from "./esbuild.ts";
import { filesOf } from "./files.ts";
import { buildPages } from "./pages.ts";
import { put } from "./put.ts";

/** The name of the main module, also inside workerd, and therefore in the stacks of errors. */
export const EDGE_MODULE = "index.js";

/** The folder of bundles in the project. */
const CACHE_FOLDER = ".build";
const DAY_MS = 24 * 60 * 60 * 1000;
/** Files that change with the dependencies, wrangler among them. */
const LOCK_FILES = ["package-lock.json", "pnpm-lock.yaml", "yarn.lock", "node_modules/.package-lock.json"];
/** The programs that decide what is in a bundle. */
const BUNDLER_PROGRAMS = ["bundle", "edge-options", "files", "plugins"].map((name) =>
  programPath(`cli/bundle/${name}`),
);

export interface Bundle {
  /** The folder of the modules and their source maps, `<module>.map`. */
  readonly dir: string;
  readonly main: string;
  /** The modules that the main one loads, at its start or on demand: their names in the folder. */
  readonly modules: readonly string[];
  /** The absolute paths of JSON files, by the name of the binding whose value they are. */
  readonly data?: Readonly<Record<string, string>>;
  /** The absolute paths of folders that the edge may read while it runs, by the name of their binding. */
  readonly folders?: Readonly<Record<string, string>>;
  /** Options of workerd's JavaScript engine. */
  readonly v8Flags?: readonly string[];
  readonly compatibilityDate: string;
  readonly compatibilityFlags: readonly string[];
  /** The text variables of the wrangler configuration. */
  readonly vars: Readonly<Record<string, string>>;
  /** The classes of the exported Durable Objects, by the name of their binding. */
  readonly objects: Readonly<Record<string, string>>;
  /** The pages' absolute folder and the name of its binding; undefined for an edge without pages. */
  readonly assets?: { readonly binding: string; readonly directory: string };
}

/** The part of a bundle that comes from the wrangler configuration. */
type Settings = Omit<Bundle, "dir" | "main" | "modules" | "data" | "folders" | "v8Flags">;

/**
 * Bundles the edge, or returns the cached bundle of the same sources. `entry`, a path relative to the project's folder `root`,
 * replaces the project's own edge.
 *
 * @throws {Error} with the bundler's output, if the edge does not bundle
 */
export async function bundleEdge(entry?: string, root = process.cwd()): Promise<Bundle> {
  const config = configurationOf(readProject(root));
  const cache = join(root, CACHE_FOLDER);
  await buildPages();
  const inputsFile = `inputs-${encodeURIComponent(entry ?? "")}.json`;
  const folderOf = (inputs: readonly string[]) => join(cache, bundleName(inputs, config, root));
  const inputs: string[] | undefined = await readJson(join(cache, inputsFile));
  const lastFolder = inputs && folderOf(inputs);
  const lastBundle: Omit<Bundle, "dir"> | undefined = lastFolder && (await readJson(join(lastFolder, "bundle.json")));
  if (lastFolder && lastBundle) {
    await keep(lastFolder);
    return { ...lastBundle, dir: lastFolder };
  }

  await removeOldBundles(cache);
  // Not by `mkdtemp`, whose folders only their owner can read: another user may start the edge.
  const draft = join(cache, `building-${randomUUID()}`);
  await mkdir(draft);
  for (;;) {
    const startedAt = Date.now();
    const { inputs, ...bundle } = await build(entry, config, draft, root).catch(async (error) => {
      await rm(draft, { recursive: true, force: true }).catch(() => {});
      throw error;
    });
    if (await changedSince(startedAt, inputs, root)) continue; // The bundle may mix old and new files.
    await writeFile(join(draft, "bundle.json"), JSON.stringify(bundle));
    const dir = folderOf(inputs);
    // Renamed, so that a bundle is complete or absent. If another process was faster, its bundle is the same.
    await rename(draft, dir).catch(() => rm(draft, { recursive: true }));
    await put(cache, inputsFile, JSON.stringify(inputs));
    await keep(dir);
    return { ...bundle, dir };
  }
}

/** The settings of a bundle from the wrangler configuration in the folder `root`. */
export function settingsOf(configuration: Configuration, root: string): Settings {
  const { compatibility_date, compatibility_flags, vars, durable_objects, assets } = configuration;
  if (!compatibility_date) throw new Error("The wrangler configuration has no compatibility_date.");
  return {
    compatibilityDate: compatibility_date,
    compatibilityFlags: compatibility_flags,
    vars: Object.fromEntries(Object.entries(vars).map(([name, value]) => [name, String(value)])),
    objects: Object.fromEntries(
      (durable_objects?.bindings ?? [])
        .filter(({ script_name }) => script_name === undefined)
        .map(({ name, class_name }) => [name, class_name]),
    ),
    ...assetsOf(assets, root),
  };
}

/** The static assets of a configuration in the folder `root`, if their directory exists. */
function assetsOf(assets: Configuration["assets"], root: string): Pick<Bundle, "assets"> {
  const { binding, directory = "" } = assets ?? {};
  const path = resolve(root, directory);
  return binding !== undefined && existsSync(path) ? { assets: { binding, directory: path } } : {};
}

/** The name of a bundle's folder: a hash of its inputs. */
function bundleName(inputs: readonly string[], config: string, root: string): string {
  const files = [...inputs, ...LOCK_FILES].map((path) => join(root, path));
  return `edge-${hashFiles([...files, config, ...BUNDLER_PROGRAMS]).slice(0, 16)}`;
}

async function readJson(path: string) {
  const text = await readFile(path, "utf8").catch(() => undefined);
  return text === undefined ? undefined : JSON.parse(text);
}

async function changedSince(time: number, inputs: readonly string[], root: string): Promise<boolean> {
  const stats = await Promise.all(inputs.map((path) => stat(join(root, path)).catch(() => undefined)));
  return stats.some((info) => (info?.mtimeMs ?? 0) > time);
}

/** Bundles into the folder `outdir`. `inputs` are the project's own files in the bundle, as paths relative to its folder. */
async function build(entry: string | undefined, config: string, outdir: string, root: string) {
  const configuration = await readConfiguration(config);
  const source = entry ?? edgeOf(readProject(root), configuration);
  const esbuild = await loadEsbuild(root);
  const options = { ...edgeOptions(source, configuration, root, "production"), outdir };
  const result = await esbuild.build(options).catch((error: Error) => {
    throw new Error(`The edge does not bundle:\n${error.message}`);
  });
  const files = await filesOf(result, root);
  for (const [name, text] of files) await writeFile(join(outdir, name), text);
  return {
    ...settingsOf(configuration, dirname(config)),
    main: EDGE_MODULE,
    modules: modulesIn(files.keys()),
    inputs: Object.keys(result.metafile.inputs).filter(isOwn).sort(),
  };
}

/** The modules that an edge loads besides its main one, of the names of its files. */
export const modulesIn = (names: Iterable<string>): string[] =>
  [...names].filter((name) => name.endsWith(".js") && name !== EDGE_MODULE).sort();

/** Whether a file is the project's own, neither a dependency nor virtual. */
export const isOwn = (path: string) => !path.includes("node_modules/") && !/^[\w-]+:/.test(path);

/** Keeps a bundle from looking old while this process lives: the edge may be started from it again. */
export async function keep(dir: string): Promise<void> {
  // A folder of `dev` exists from its first build on.
  const touch = () => utimes(dir, new Date(), new Date()).catch(() => {});
  setInterval(touch, DAY_MS / 4).unref();
  await touch();
}

/** Removes bundles that have been used by no process for a day. */
async function removeOldBundles(cache: string): Promise<void> {
  await mkdir(cache, { recursive: true });
  for (const name of await readdir(cache)) {
    const path = join(cache, name);
    if (!/^(edge|building|dev)-/.test(name)) continue;
    const info = await stat(path).catch(() => undefined);
    if (info && Date.now() - info.mtimeMs > DAY_MS) await rm(path, { recursive: true, force: true });
  }
}
