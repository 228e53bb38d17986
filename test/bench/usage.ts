/** What a process uses, as Linux counts it. */
import { readFileSync } from "node:fs";

/** The unit of process times in `/proc`, in seconds: a constant of Linux. */
const TICK = 0.01;

/** CPU time a process has used so far, user and system, all its threads: seconds. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The second field, the name in parentheses, may hold spaces; utime and stime are the 14th and 15th.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK;
}

/** Memory a process has in RAM, in megabytes (10^6 bytes). */
export function memory(pid: number): number {
  const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return (Number(kibibytes) * 1_024) / 1e6;
}
