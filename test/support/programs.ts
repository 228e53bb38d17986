/**
 * The programs of a stack, each bundled into a few files before the tests: in half the processor time of the sources, a bundle is
 * ready. The sources themselves run in the tests of the launcher.
 */
import { readdir, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { loadEsbuild } from "../../cli/bundle/esbuild.ts";
import { put } from "../../cli/bundle/put.ts";

const SOURCES = { worker: "worker/main.ts", resonate: "server/node/process.ts" } as const;
/** Runs in a thread of the worker, so it stays a module of its own. */
const WATCHDOG = "worker/process/watchdog.ts";
const FOLDER = ".build/programs";
/** The environment variable with the programs' paths, for the processes that run test files. */
const VARIABLE = "TEST_PROGRAMS";
const DAY_MS = 24 * 60 * 60 * 1_000;
/** Packages that are no modules call `require`. */
const REQUIRE = 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);';

/** Bundles the programs. */
export async function bundlePrograms(): Promise<void> {
  const { build } = await loadEsbuild(process.cwd());
  const { outputFiles, metafile } = await build({
    entryPoints: [...Object.values(SOURCES), WATCHDOG],
    entryNames: "[name]-[hash]",
    outdir: FOLDER,
    outExtension: { ".js": ".mjs" },
    write: false,
    metafile: true,
    bundle: true,
    splitting: true,
    platform: "node",
    format: "esm",
    target: "node22",
    banner: { js: REQUIRE },
    logLevel: "warning",
  });
  for (const { path, text } of outputFiles) await put(dirname(path), basename(path), text);
  const paths = Object.entries(metafile.outputs).map(([path, { entryPoint }]) => [entryPoint, resolve(path)]);
  process.env[VARIABLE] = JSON.stringify(Object.fromEntries(paths));
  await removeOld(outputFiles.map(({ path }) => basename(path)));
}

/** The path of a program: of its bundle in tests, of its source in other programs. */
export function programOf(part: keyof typeof SOURCES): string {
  const bundles: Record<string, string> = JSON.parse(process.env[VARIABLE] ?? "{}");
  return bundles[SOURCES[part]] ?? SOURCES[part];
}

/** Removes bundles of other sources that are older than a day. */
async function removeOld(current: readonly string[]): Promise<void> {
  for (const name of await readdir(FOLDER)) {
    const path = join(FOLDER, name);
    const info = await stat(path).catch(() => undefined);
    if (!current.includes(name) && info && Date.now() - info.mtimeMs > DAY_MS) await rm(path, { force: true });
  }
}
