/** What a process uses, as Linux counts it. */
import { readdirSync, readFileSync } from "node:fs";
import { sum } from "simple-statistics";

/** CPU time a process has used so far, user and system, by the threads it has: seconds. */
export function cpuSeconds(pid: number): number {
  // The process's own entry counts in hundredths of a second, too coarse for short runs; this is in nanoseconds.
  const threads = readdirSync(`/proc/${pid}/task`);
  const used = threads.map((thread) => Number(readThread(`/proc/${pid}/task/${thread}/schedstat`).split(" ")[0]));
  return sum(used) / 1e9;
}

/** A thread that has ended since has nothing to say. */
function readThread(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "0";
  }
}

/** Memory a process has in RAM, in megabytes (10^6 bytes). */
export function memory(pid: number): number {
  const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return (Number(kibibytes) * 1_024) / 1e6;
}
