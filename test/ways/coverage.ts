/**
 * Records which functions of the project this process runs. A program that is started with this module before it logs them on
 * SIGUSR2, as a line `coverage` with the functions since the line before.
 */
import { Session } from "node:inspector/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { CoveredFunction } from "./count.ts";

const ROOT = pathToFileURL(join(import.meta.dirname, "../../")).href;
/** What measures, and what others wrote. */
const FOREIGN = /^test\/|(^|\/)node_modules\//;

const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });

/** The functions that have run since the last call. */
export async function takeCoverage(): Promise<CoveredFunction[]> {
  const { result } = await session.post("Profiler.takePreciseCoverage");
  return result.flatMap(({ url, functions }) => {
    const file = url.startsWith(ROOT) ? url.slice(ROOT.length) : undefined;
    if (file === undefined || FOREIGN.test(file)) return [];
    return functions.flatMap(({ functionName: name, ranges: [range] }) =>
      range && range.count > 0 ? [{ file, name, start: range.startOffset, end: range.endOffset }] : [],
    );
  });
}

process.on("SIGUSR2", async () => {
  console.log(JSON.stringify({ msg: "coverage", functions: await takeCoverage() }));
});
