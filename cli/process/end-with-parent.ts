import { type ChildProcess, spawn } from "node:child_process";

/**
 * Reads lines `+PID` and `-PID`, and kills those processes when its input ends, which happens when this process ends. It is a
 * shell script because a shell takes a tenth of the memory of Node.
 */
const WATCHDOG = `pids=
while read -r line; do
  case $line in
    +*) pids="$pids \${line#+}" ;;
    *)
      left=
      for pid in $pids; do [ "$pid" = "\${line#-}" ] || left="$left $pid"; done
      pids=$left ;;
  esac
done
for pid in $pids; do kill -9 "$pid"; done`;

let watchdog: ChildProcess | undefined;
const pids = new Set<number>();

/** Makes `child` end with this process, even if this process is killed with SIGKILL. */
export function endWithParent(child: Pick<ChildProcess, "pid" | "once">): void {
  const { pid } = child;
  if (pid === undefined) return; // The process did not start; its error event has the reason.
  pids.add(pid);
  notify(`+${pid}`);
  child.once("exit", () => {
    pids.delete(pid);
    notify(`-${pid}`);
  });
}

function notify(line: string): void {
  watchdog ??= startWatchdog();
  watchdog.stdin?.write(`${line}\n`);
}

function startWatchdog(): ChildProcess {
  // Detached, so that a Ctrl-C or a kill of the process group does not end it before its work is done.
  const child = spawn("sh", ["-c", WATCHDOG, "parent-watchdog"], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  child.once("exit", () => {
    watchdog = undefined;
    for (const pid of pids) notify(`+${pid}`);
  });
  child.stdin.on("error", () => {}); // The exit event follows and starts another watchdog.
  // Neither the watchdog nor the pipe to it keeps this process running.
  child.unref();
  if ("unref" in child.stdin && typeof child.stdin.unref === "function") child.stdin.unref();
  return child;
}
