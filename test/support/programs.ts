/**
 * The programs of a stack, each bundled into a few files before the tests: in half the processor time of the sources, a bundle is
 * ready. The sources themselves run in the tests of the launcher.
 */
import { createHash } from "node:crypto";
import { existsSync, globSync } from "node:fs";
import { mkdir, readdir, rm, stat, utimes } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { loadEsbuild } from "../../cli/bundle/esbuild.ts";
import { put } from "../../cli/bundle/put.ts";

/**
 * The sources of programs, and the modules of programs that tests write. Not those whose tests
 * read the lines of sources in errors, or the name of the file: a bundle has others.
 */
const SOURCES = [
  "worker/{main,index}.ts",
  "server/node/process.ts",
  "wrap/index.ts",
  "wrap/worker/{index,implementations}.ts",
  "cli/wrap/serve-calls.ts",
  "test/{account,files,limits,tasks}/fixture/*-worker.ts",
  "test/conformance/conformance-worker.ts",
  "test/events/outputs/worker.ts",
  "test/worker/scripts/{calling,grouped,looping}-worker.ts",
];
/** What a program runs in a thread or a process of its own, by the name with which it looks for it beside itself. */
const BESIDE = { watchdog: "worker/process/watchdog.ts", "program-host": "wrap/worker/host/program-host.ts" };
const FOLDER = ".build/programs";
/** The environment variable with the bundles' folder, for the processes that run test files. */
const VARIABLE = "TEST_PROGRAMS";
const DAY_MS = 24 * 60 * 60 * 1_000;
/** Packages that are no modules call `require`. */
const REQUIRE = 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);';

/** Bundles the programs. */
export async function bundlePrograms(): Promise<void> {
  const { build } = await loadEsbuild(process.cwd());
  const sources = globSync(SOURCES);
  const { outputFiles } = await build({
    entryPoints: { ...BESIDE, ...Object.fromEntries(sources.map((source) => [nameOf(source), source])) },
    outdir: FOLDER,
    outExtension: { ".js": ".mjs" },
    write: false,
    bundle: true,
    splitting: true,
    platform: "node",
    format: "esm",
    target: "node22",
    // Loaded only when it is needed. A bundled `import()` of it, which is no module, would not have its names.
    external: ["undici"],
    banner: { js: REQUIRE },
    logLevel: "warning",
  });
  const hash = createHash("sha256")
    .update(outputFiles.map(({ text }) => text).join("\0"))
    .digest("hex")
    .slice(0, 16);
  const folder = resolve(FOLDER, hash);
  await mkdir(folder, { recursive: true });
  for (const { path, text } of outputFiles) await put(folder, basename(path), text);
  await utimes(folder, new Date(), new Date());
  process.env[VARIABLE] = folder;
  await removeOld(hash);
}

/** The absolute path of a program, given by its source: of its bundle in tests, if it has one, or else of the source. */
export function programOf(source: string): string {
  const bundle = join(process.env[VARIABLE] ?? "", `${nameOf(source)}.mjs`);
  return VARIABLE in process.env && existsSync(bundle) ? bundle : resolve(source);
}

/** The name of a source's bundle. */
const nameOf = (source: string) => source.replace(/\.ts$/, "").replaceAll("/", "-");

/** Removes bundles of other sources that are older than a day. */
async function removeOld(current: string): Promise<void> {
  for (const name of await readdir(FOLDER)) {
    const path = join(FOLDER, name);
    const info = await stat(path).catch(() => undefined);
    if (name !== current && info && Date.now() - info.mtimeMs > DAY_MS)
      await rm(path, { recursive: true, force: true });
  }
}
