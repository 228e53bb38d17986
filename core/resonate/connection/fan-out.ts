/** Bounds the calls to the Resonate server that one request has under way, so that no caller blocks it for others. */
import { BatchedReads } from "./batched-reads.ts";
import type { Requests } from "./client.ts";

const MAX_CONCURRENT_REQUESTS = 16;

/** Runs calls, a bounded number at a time. Each request has its own fan-out, as requests of an isolate share no promises. */
export class FanOut {
  /** How many calls the request has made so far, including those that other objects made for it. A read of one promise is a call. */
  count = 0;
  #free = MAX_CONCURRENT_REQUESTS;
  readonly #waiting: (() => void)[] = [];

  /** The requests of a client, bounded by this fan-out. Reads that begin together are one request, if the server offers that. */
  limit(client: Requests): Requests {
    const bounded: Requests = {
      send: ((...args: Parameters<Requests["send"]>) => this.#run(() => client.send(...args))) as Requests["send"],
      call: (...args) => this.#run(() => client.call(...args)),
      search: (...args) => this.#run(() => client.search(...args)),
      readMany: (...args) => this.#run(() => client.readMany(...args)),
      readsMany: () => client.readsMany(),
    };
    const reads = new BatchedReads(bounded);
    const counted = <Args extends unknown[], Result>(call: (...args: Args) => Result) => {
      return (...args: Args): Result => {
        this.count += 1;
        return call(...args);
      };
    };
    return {
      ...bounded,
      send: counted(bounded.send) as Requests["send"],
      call: counted(reads.call),
      search: counted(bounded.search),
    };
  }

  async #run<Result>(call: () => Promise<Result>): Promise<Result> {
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
