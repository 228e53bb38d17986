import { join } from "node:path";
import { execa } from "execa";
import { bundleEdge } from "../../cli/bundle/bundle.ts";

/** What the processes of most tests load, and what this run's own processes load. */
const LOADED = ["server/node/http.ts", "testing/index.ts", "tools/runs.ts", "worker/index.ts", "wrap/worker/index.ts"];

/** Bundles the edge once, before any test file asks for it, and compiles once what processes load. */
export default async function setup(): Promise<void> {
  await Promise.all([bundleEdge(), compile()]);
}

/** Node writes its compile cache when a process exits by itself, and tests kill theirs. It halves the costs of a start. */
async function compile(): Promise<void> {
  const modules = [...LOADED.map((path) => join(import.meta.dirname, "../..", path)), "wrangler"];
  await execa(process.execPath, [
    "-e",
    `Promise.all(${JSON.stringify(modules)}.map((module) => import(module))).then(() => process.exit())`,
  ]);
}
