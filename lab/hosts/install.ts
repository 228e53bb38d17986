import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { HOSTS, type Host } from "./host-table.ts";

/** How long an installation may take, in milliseconds. */
const PATIENCE = 600_000;

/** Installs a host's package into its folder of `cache`, unless that version is there; returns its command's path. */
export async function install({ package: name, version, command }: Host, cache: string): Promise<string> {
  const folder = join(cache, name.replace(/^@/, "").replace("/", "-"));
  const manifest = join(folder, "node_modules", name, "package.json");
  const found = await readFile(manifest, "utf8").then(
    (text) => JSON.parse(text).version,
    () => undefined,
  );
  if (found !== version) {
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "package.json"), JSON.stringify({ private: true }));
    const options = ["--no-audit", "--no-fund", "--save-exact", "--loglevel=error"];
    await execa("npm", ["install", ...options, `${name}@${version}`], { cwd: folder, timeout: PATIENCE });
  }
  return join(folder, "node_modules/.bin", command);
}

/** The hosts whose names contain one of the words; all hosts if there are no words. */
export const chosenHosts = (words: readonly string[]): Host[] =>
  HOSTS.filter(
    ({ name }) => words.length === 0 || words.some((word) => name.toLowerCase().includes(word.toLowerCase())),
  );
