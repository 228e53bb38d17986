/**
 * Runs a program of this folder, or says what to type if the folder's dependencies are not installed.
 *
 *   node lab/start.ts PROGRAM [ARGUMENT…]
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import manifest from "./package.json" with { type: "json" };

const [node = "", , program = "", ...args] = process.argv;
const folder = import.meta.dirname;
const missing = Object.keys(manifest.dependencies).filter((name) => !existsSync(join(folder, "node_modules", name)));
if (missing.length > 0) {
  console.error("lab/ has dependencies of its own, which are not installed. Type first: npm ci --prefix lab");
  process.exit(1);
}
const file = join(folder, program);
process.argv = [node, file, ...args];
await import(pathToFileURL(file).href);
