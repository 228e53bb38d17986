/** Installs a client into a folder of its own, outside the checkout. */
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { execa } from "execa";
import type { MatrixClient } from "./matrix.ts";

const DRIVERS = join(import.meta.dirname, "drivers");

/** How long an installation may take, in milliseconds. */
const PATIENCE = 600_000;

export interface Installed {
  version: string;
  /** The command that drives it, in `cwd`. */
  command: [string, ...string[]];
  cwd: string;
}

/** @throws {Error} with what the package manager printed */
export async function install({ packages, driver, ecosystem }: MatrixClient, folder: string): Promise<Installed> {
  await mkdir(folder, { recursive: true });
  await cp(DRIVERS, folder, { recursive: true });
  const [first = ""] = packages;
  if (ecosystem === "npm") {
    await writeFile(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
    const options = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
    await execa("npm", ["install", ...options, ...packages], { cwd: folder, timeout: PATIENCE });
    const name = first.replace(/(?!^)@.*$/, "");
    const { version } = JSON.parse(await readFile(join(folder, "node_modules", name, "package.json"), "utf8"));
    return { version, command: [process.execPath, driver], cwd: folder };
  }
  const bin = join(folder, "venv/bin");
  await execa("python3", ["-m", "venv", dirname(bin)], { timeout: PATIENCE });
  await execa(join(bin, "pip"), ["install", "--quiet", ...packages], { timeout: PATIENCE });
  const name = first.replace(/[[<>=].*$/, "");
  const { stdout } = await execa(join(bin, "python"), [
    "-c",
    `import importlib.metadata as m; print(m.version("${name}"))`,
  ]);
  return { version: stdout.trim(), command: [join(bin, "python"), driver], cwd: folder };
}
