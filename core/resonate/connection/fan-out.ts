/** Bounds the calls to the Resonate server that one request has under way, so that no caller blocks it for others. */
import { batchedReads } from "./batched-reads.ts";
import type { Requests } from "./client.ts";

const MAX_CONCURRENT_REQUESTS = 16;

/** Matches the kinds of calls that read promises. */
const READ = /^promise\.(get|register_listener)$/;

/** Runs calls, a bounded number at a time. Each request has its own fan-out, as requests of an isolate share no promises. */
export class FanOut {
  /** How many calls the request has made so far, including those that other objects made for it. A read of one promise is a call. */
  count = 0;
  #free = MAX_CONCURRENT_REQUESTS;
  readonly #waiting: (() => void)[] = [];

  /** The requests of a client, bounded by this fan-out. Reads that begin together are one request, if the server offers that. */
  limit(client: Requests): Requests {
    let reads: Pick<Requests, "call"> | undefined;
    const bounded: Requests = {
      send: ((...args: Parameters<Requests["send"]>) => this.#run(() => client.send(...args))) as Requests["send"],
      call: (...args) => {
        if (!READ.test(args[0].kind)) return this.#run(() => client.call(...args));
        reads ??= batchedReads({ ...bounded, call: (...read) => this.#run(() => client.call(...read)) });
        return reads.call(...args);
      },
      search: (...args) => this.#run(() => client.search(...args)),
      readMany: async (data, signal) => {
        const { length } = data.ids;
        const results = await this.#run(() => client.readMany(data, signal), length);
        // The others are read by further calls.
        this.count -= length - (results?.length ?? 0);
        return results;
      },
      readsMany: () => client.readsMany(),
    };
    return bounded;
  }

  async #run<Result>(call: () => Promise<Result>, count = 1): Promise<Result> {
    this.count += count;
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
