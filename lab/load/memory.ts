import { setTimeout as delay } from "node:timers/promises";
import { memory } from "../../test/support/usage.ts";

/** The resident memory of a process at the start, at its peak and at the end, in megabytes. */
export interface Memory {
  start: number;
  peak: number;
  end: number;
}

/** Reads the memory of processes every second until `stop`. */
export function watchMemory(processes: Readonly<Record<string, number>>) {
  const over = new AbortController();
  const seen: Record<string, Memory> = {};
  const look = () => {
    for (const [name, pid] of Object.entries(processes)) {
      const now = Math.round(memory(pid));
      const { start = now, peak = now } = seen[name] ?? {};
      seen[name] = { start, peak: Math.max(peak, now), end: now };
    }
  };
  look();
  const watching = (async () => {
    while (!over.signal.aborted) {
      await delay(1_000, undefined, { signal: over.signal }).catch(() => {});
      if (!over.signal.aborted) look();
    }
  })();
  return {
    async stop(): Promise<Record<string, Memory>> {
      over.abort();
      await watching;
      return seen;
    },
    [Symbol.dispose]: () => over.abort(),
  };
}
