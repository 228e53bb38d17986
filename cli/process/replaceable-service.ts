import type { ReverseProxy } from "./reverse-proxy.ts";
import { type Service, type Supervised, supervise } from "./supervise.ts";

/** A service behind a reverse proxy, whose process is replaced by one of a newer version while it serves. */
export class ReplaceableService {
  readonly #proxy: ReverseProxy;
  readonly #say: (message: string) => void;
  #current: Supervised | undefined;
  /** Starting, or replaced and finishing their requests. */
  readonly #others = new Set<Supervised>();

  constructor(proxy: ReverseProxy, say: (message: string) => void) {
    this.#proxy = proxy;
    this.#say = say;
  }

  /**
   * Starts a version on its own port, forwards requests to it once it is ready, and ends the previous one. A version that
   * does not start changes nothing.
   *
   * @throws {Error} with the last output of a version that does not start
   */
  async replace(service: Service, port: number): Promise<void> {
    // The output of a version that does not start is in the error instead.
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
    this.#proxy.forwardTo(port);
    next.ended.catch((error: Error) => this.#say(error.message));
    if (!before) return;
    this.#others.add(before);
    void before.stop().finally(() => this.#others.delete(before));
  }

  /** Ends all processes; kills those that take longer than `patience` milliseconds. */
  async stop(patience: number): Promise<void> {
    this.#proxy.close();
    const all = [...this.#others, ...(this.#current ? [this.#current] : [])];
    const late = setTimeout(() => all.forEach((each) => void each.kill()), patience);
    await Promise.all(all.map((each) => each.stop()));
    clearTimeout(late);
  }
}
