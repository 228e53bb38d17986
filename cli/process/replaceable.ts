import type { Front } from "./front.ts";
import { type Service, type Supervised, supervise } from "./supervise.ts";

/** A service whose process can be replaced by that of a newer version while it serves. */
export class Replaceable {
  readonly #front: Front;
  readonly #say: (message: string) => void;
  #current: Supervised | undefined;
  /** On their way in, or replaced and finishing what they had begun. */
  readonly #others = new Set<Supervised>();

  constructor(front: Front, say: (message: string) => void) {
    this.#front = front;
    this.#say = say;
  }

  /**
   * Starts a version on a port of its own, moves the front to it once it is ready, and lets the one before end. A version
   * that does not start changes nothing.
   *
   * @throws {Error} with the last output of a version that does not start
   */
  async replace(service: Service, port: number): Promise<void> {
    // What a version writes that does not start is in the error.
    const held: [string, "stdout" | "stderr"][] = [];
    let hold = (...line: (typeof held)[number]): void => {
      held.push(line);
    };
    const next = supervise({ ...service, onLine: (...line) => hold(...line) }, this.#say, { attempts: 1 });
    this.#others.add(next);
    await Promise.race([next.ready, next.ended]).finally(() => this.#others.delete(next));
    hold = (...line) => service.onLine?.(...line);
    for (const line of held) hold(...line);
    const before = this.#current;
    this.#current = next;
    this.#front.to(port);
    next.ended.catch((error: Error) => this.#say(error.message));
    if (!before) return;
    this.#others.add(before);
    void before.stop().finally(() => this.#others.delete(before));
  }

  /** Ends all processes; what takes longer than `patience` milliseconds is killed. */
  async stop(patience: number): Promise<void> {
    this.#front.close();
    const all = [...this.#others, ...(this.#current ? [this.#current] : [])];
    const late = setTimeout(() => all.forEach((each) => void each.kill()), patience);
    await Promise.all(all.map((each) => each.stop()));
    clearTimeout(late);
  }
}
