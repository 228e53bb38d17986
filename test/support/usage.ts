/** CPU time and memory of a process, from Linux. */
import { readdirSync, readFileSync } from "node:fs";

/** The CPU time of the current threads of a process, user and system, in seconds. */
export function cpuSeconds(pid: number): number {
  // The threads' entries are in nanoseconds. That of the process counts hundredths of a second, too coarse for short runs.
  const threads = readdirSync(`/proc/${pid}/task`);
  const used = threads.map((thread) => Number(readThread(`/proc/${pid}/task/${thread}/schedstat`).split(" ")[0]));
  return used.reduce((sum, each) => sum + each, 0) / 1e9;
}

/** Reads a thread's entry; the default is for a thread that has just ended. */
function readThread(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "0";
  }
}

/** The memory of a process, in megabytes (10^6 bytes). Memory that several processes share is divided among them. */
export function ownMemory(pid: number): number {
  const kibibytes = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1];
  return (Number(kibibytes) * 1_024) / 1e6;
}

/** The resident memory of a process, in megabytes (10^6 bytes). */
export function memory(pid: number): number {
  const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return (Number(kibibytes) * 1_024) / 1e6;
}
