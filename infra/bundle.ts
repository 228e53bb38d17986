import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { execa } from "execa";

const ROOT = join(import.meta.dirname, "..");
const CACHE = join(ROOT, ".build");
const DAY = 24 * 60 * 60 * 1000;

/** The edge as `wrangler deploy` uploads it. */
export interface Bundle {
  /** Folder that holds the bundled module. */
  readonly dir: string;
  /** The module's file name. */
  readonly main: string;
  readonly compatibilityDate: string;
  readonly compatibilityFlags: readonly string[];
  /** The text variables of `wrangler.toml`. */
  readonly vars: Readonly<Record<string, string>>;
}

/** The edge's own entry point, from the repository root. */
const ENTRY = "functions/index.ts";

/**
 * Bundles the edge, or finds the bundle of the same sources from an earlier call. Needs no network. `entry`, a path
 * from the repository root, is for an edge that offers something else; its sources are its folder's and the edge's.
 *
 * @throws {Error} with what wrangler printed, when the edge does not bundle
 */
export async function bundleEdge(entry = ENTRY): Promise<Bundle> {
  const dir = join(CACHE, `edge-${await sourceHash(entry)}`);
  const main = `${basename(entry, ".ts")}.js`;
  const manifest = join(dir, "bundle.json");
  const cached = await readFile(manifest, "utf8").catch(() => undefined);
  if (cached !== undefined) return { ...JSON.parse(cached), dir, main };

  await removeOldBundles();
  const building = `${dir}.${process.pid}`;
  const [, settings] = await Promise.all([runWrangler(entry, building), readSettings()]);
  await writeFile(join(building, "bundle.json"), JSON.stringify(settings));
  // A rename, so that a bundle is there whole or not at all; when another process was first, its bundle is as good.
  await rename(building, dir).catch(() => rm(building, { recursive: true }));
  return { ...settings, dir, main };
}

/** A hash over everything the bundle is made from; the lock file stands for the dependencies and for wrangler. */
async function sourceHash(entry: string): Promise<string> {
  const folders = [...new Set([dirname(ENTRY), dirname(entry)])];
  const sources = (await Promise.all(folders.map(filesIn))).flat();
  const hash = createHash("sha256").update(`${entry}\0`);
  for (const path of [...sources.sort(), join(ROOT, "wrangler.toml"), join(ROOT, "package-lock.json")]) {
    hash
      .update(`${path}\0`)
      .update(await readFile(path))
      .update("\0");
  }
  return hash.digest("hex").slice(0, 16);
}

async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(join(ROOT, folder), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

async function runWrangler(entry: string, outdir: string): Promise<void> {
  const wrangler = join(ROOT, "node_modules/wrangler/bin/wrangler.js");
  const env = { WRANGLER_SEND_METRICS: "false", WRANGLER_HIDE_BANNER: "true", WRANGLER_WRITE_LOGS: "false" };
  const args = ["deploy", entry, "--dry-run", "--outdir", outdir];
  const options = { cwd: ROOT, env, stdin: "ignore", all: true, reject: false } as const;
  const result = await execa(process.execPath, [wrangler, ...args], options);
  if (result.failed) throw new Error(`The edge does not bundle:\n${result.all}`);
}

async function readSettings(): Promise<Omit<Bundle, "dir" | "main">> {
  // Loaded only when there is something to bundle: wrangler takes most of a second to load.
  const { unstable_readConfig } = await import("wrangler");
  const config = unstable_readConfig({ config: join(ROOT, "wrangler.toml") });
  if (!config.compatibility_date) throw new Error("wrangler.toml has no compatibility_date");
  return {
    compatibilityDate: config.compatibility_date,
    compatibilityFlags: config.compatibility_flags,
    vars: Object.fromEntries(Object.entries(config.vars).map(([name, value]) => [name, String(value)])),
  };
}

/** Bundles of earlier sources; young ones may still be about to be served by another process. */
async function removeOldBundles(): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  for (const name of await readdir(CACHE)) {
    const path = join(CACHE, name);
    if (!name.startsWith("edge-")) continue;
    const info = await stat(path).catch(() => undefined);
    if (info && Date.now() - info.mtimeMs > DAY) await rm(path, { recursive: true, force: true });
  }
}
