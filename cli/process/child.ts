import type { Readable } from "node:stream";
import { execa } from "execa";
import { endWithParent } from "./end-with-parent.ts";

/** A child process, which ends with its parent at the latest, even if the parent is killed. */
export interface Child {
  readonly pid: number | undefined;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** The process's file descriptor 3. */
  readonly control: Readable;
  readonly exited: Promise<ExitStatus>;
  /** Sends SIGTERM, and SIGKILL if it still runs after its grace period. */
  stop(): void;
  kill(signal: NodeJS.Signals): void;
}

interface ExitStatus {
  exitCode: number | undefined;
  signal: string | undefined;
}

interface ChildOptions {
  /** The whole environment of the process. */
  env: Readonly<Record<string, string | undefined>>;
  /** How long it may take to end after SIGTERM, in milliseconds. */
  grace: number;
  cwd?: string | undefined;
}

/** Starts a program. Its output is dropped unless there are listeners on `stdout` and `stderr`. */
export function startChild(file: string, args: string[], { env, grace, cwd }: ChildOptions): Child {
  const child = execa(file, args, {
    env,
    ...(cwd !== undefined && { cwd }),
    extendEnv: false,
    // In its own process group, so that a Ctrl-C reaches only the parent, which ends its children in order.
    detached: true,
    cleanup: false,
    stdio: ["ignore", "pipe", "pipe", "pipe"],
    buffer: false,
    reject: false,
    forceKillAfterDelay: grace,
  });
  endWithParent(child.nodeChildProcess);
  // An unread pipe fills up and blocks the process.
  child.stdout.resume();
  child.stderr.resume();
  return {
    pid: child.pid,
    stdout: child.stdout,
    stderr: child.stderr,
    control: child.stdio[3] as Readable,
    exited: child.then(({ exitCode, signal }) => ({ exitCode, signal })),
    stop: () => void child.kill(),
    kill: (signal) => void child.kill(signal),
  };
}
