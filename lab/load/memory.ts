import { setTimeout as delay } from "node:timers/promises";
import { memory } from "../bench/setup/usage.ts";

/** Memory that a process had in RAM: when watching began, the most, and when it ended. In megabytes. */
export interface Memory {
  start: number;
  peak: number;
  end: number;
}

/** Looks every second at what processes use, until `stop`. */
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
