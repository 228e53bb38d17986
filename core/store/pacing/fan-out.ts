/** Bounds the calls to the Resonate server that one request has under way, so that no caller blocks it for others. */
import type { Requests } from "../connection/client.ts";

const MOST = 16;

/** Runs functions, a bounded number at a time. Each request has its own fan-out, as requests of an isolate share no promises. */
export interface FanOut {
  <Result>(run: () => Promise<Result>): Promise<Result>;
  /** How many calls the request has made so far, including those that were charged. */
  readonly count: number;
  /** Counts calls that other objects made for the request. */
  charge(calls: number): void;
}

export function createFanOut(): FanOut {
  const waiting: (() => void)[] = [];
  let free = MOST;
  let count = 0;
  const fanOut = async <Result>(run: () => Promise<Result>) => {
    count += 1;
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await run();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    }
  };
  const charge = (calls: number) => {
    count += calls;
  };
  return Object.defineProperty(Object.assign(fanOut, { charge }), "count", { get: () => count }) as unknown as FanOut;
}

/** The same requests, bounded by `fanOut`. */
export function boundedBy(client: Requests, fanOut: FanOut): Requests {
  const send = (...args: Parameters<Requests["send"]>) => fanOut(() => client.send(...args));
  return {
    send: send as Requests["send"],
    call: (...args) => fanOut(() => client.call(...args)),
    search: (...args) => fanOut(() => client.search(...args)),
    ready: () => client.ready(),
  };
}
