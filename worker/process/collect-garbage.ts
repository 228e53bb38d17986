import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

let collect: ((options: { type: "major" | "minor" }) => void) | undefined;

/**
 * Collects garbage now, for example that of the process's start, which is a third of its memory. V8 by itself waits until the
 * heap has outgrown its live objects, later by hundreds of megabytes. `minor` collects only young objects, in up to 1 ms.
 */
export function collectGarbage(type: "major" | "minor" = "major"): void {
  if (!collect) setFlagsFromString("--expose-gc");
  collect ??= runInNewContext("gc");
  collect?.({ type });
}

/** How many bytes may pass before their buffers are collected. V8 itself collects only after 64 MB of unused buffers. */
const MAX_UNCOLLECTED_BYTES = 8 * 1024 * 1024;

let uncollectedBytes = 0;

/** Counts bytes that passed through buffers, which are collected now and then. */
export function collectBuffers(bytes: number): void {
  uncollectedBytes += bytes;
  if (uncollectedBytes < MAX_UNCOLLECTED_BYTES) return;
  uncollectedBytes = 0;
  collectGarbage("minor");
}
