import type { Readable } from "node:stream";
import { execa } from "execa";
import { tether } from "./tether.ts";

/** A process of this stack. It ends with its parent at the latest, also when the parent is killed. */
export interface Child {
  readonly pid: number | undefined;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** File descriptor 3, which the process may write to. */
  readonly control: Readable;
  /** Resolves when it has ended, with how it ended. */
  readonly exited: Promise<Ending>;
  /** Sends SIGTERM, and SIGKILL when that has not ended it in its time of grace. */
  stop(): void;
  kill(signal: NodeJS.Signals): void;
}

export interface Ending {
  exitCode: number | undefined;
  signal: string | undefined;
}

interface ChildOptions {
  /** The whole environment of the process. */
  env: Readonly<Record<string, string | undefined>>;
  /** Milliseconds it gets to end by itself. */
  grace: number;
  /** The folder it runs in, if not this process's. */
  cwd?: string | undefined;
}

/** Starts a program. What it writes is dropped unless somebody listens to `stdout` and `stderr`. */
export function startChild(file: string, args: string[], { env, grace, cwd }: ChildOptions): Child {
  const child = execa(file, args, {
    env,
    ...(cwd !== undefined && { cwd }),
    extendEnv: false,
    // A process group of its own: a Ctrl-C at the terminal goes to the parent, which ends its children in order.
    detached: true,
    cleanup: false,
    stdio: ["ignore", "pipe", "pipe", "pipe"],
    buffer: false,
    reject: false,
    forceKillAfterDelay: grace,
  });
  tether(child);
  // Unread, a full pipe would block the process.
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
