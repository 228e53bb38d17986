import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

let collect: ((options: { type: "major" | "minor" }) => void) | undefined;

/**
 * Collects what this process has left behind, of its start for example, which is a third of it. V8 itself collects when the heap
 * has outgrown what is alive, later when it has outgrown hundreds of megabytes. `minor`: what is young alone, in up to 1 ms.
 */
export function collectGarbage(type: "major" | "minor" = "major"): void {
  if (!collect) setFlagsFromString("--expose-gc");
  collect ??= runInNewContext("gc");
  collect?.({ type });
}
