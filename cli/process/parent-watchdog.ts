/**
 * A program that kills processes when their parent has died without ending them, for example by `kill -9`. It reads
 * `+<pid>` and `-<pid>` lines from standard input; when the parent ends, and so the input, it kills the listed processes.
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
        // It has just ended by itself.
      }
    }
  });
