import type { Cleanups } from "../../cli/process/cleanups.ts";
import type { Program } from "./program.ts";

/**
 * One process of a stack. A test can stop it and start it again.
 *
 * @example
 * const restart = async (part: StackPart) => {
 *   await part.kill();
 *   await part.start();
 * };
 */
export interface StackPart<P extends Program = Program> {
  /** The process that runs now, or the last one that ran. */
  readonly process: P;
  /** Kills the process, as `kill -9` does, and waits until it has exited. */
  kill(): Program["exited"];
  /** Sends the process a signal, by default SIGKILL, and waits until it has exited. */
  end(signal?: NodeJS.Signals): Program["exited"];
  /** Starts a new process at the same address and waits until it answers. */
  start(): Promise<void>;
}

/** A part of a stack, with its first process and a function that starts the next one. */
export function part<P extends Program>(first: P, launch: () => Promise<P>): StackPart<P> {
  let current = first;
  const end = (signal: NodeJS.Signals = "SIGKILL") => {
    current.signal(signal);
    return current.exited;
  };
  return {
    get process() {
      return current;
    },
    end,
    kill: () => end("SIGKILL"),
    async start() {
      current = await launch();
    },
  };
}

export function disposePart(stack: Pick<Cleanups, "defer">, part: StackPart): void {
  stack.defer(async () => void (await part.kill()));
}
