/**
 * Kills processes whose parent died without ending them, which no parent can do for itself after a `kill -9`.
 *
 * It reads `+<pid>` and `-<pid>` lines from standard input; when the input ends, because the parent ended, it kills
 * what is still listed.
 */
import { createInterface } from "node:readline";

const pids = new Set<number>();

createInterface({ input: process.stdin })
  .on("line", (line) => {
    const pid = Number(line.slice(1));
    if (line.startsWith("+")) pids.add(pid);
    else pids.delete(pid);
  })
  .on("close", () => {
    for (const pid of pids) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It ended by itself a moment ago.
      }
    }
  });
