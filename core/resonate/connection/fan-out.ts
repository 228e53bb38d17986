/** Bounds the calls to the Resonate server that one request has under way, so that no caller blocks it for others. */
import type { Requests } from "./client.ts";

const MAX_CONCURRENT_REQUESTS = 16;

/** Runs calls, a bounded number at a time. Each request has its own fan-out, as requests of an isolate share no promises. */
export class FanOut {
  /** How many calls the request has made so far, including those that other objects made for it. */
  count = 0;
  #free = MAX_CONCURRENT_REQUESTS;
  readonly #waiting: (() => void)[] = [];

  /** The requests of a client, bounded by this fan-out. */
  limit(client: Requests): Requests {
    return {
      send: ((...args: Parameters<Requests["send"]>) => this.#run(() => client.send(...args))) as Requests["send"],
      call: (...args) => this.#run(() => client.call(...args)),
      search: (...args) => this.#run(() => client.search(...args)),
    };
  }

  async #run<Result>(call: () => Promise<Result>): Promise<Result> {
    this.count += 1;
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await call();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}
