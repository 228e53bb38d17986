/** Bounds the calls to the Resonate server that one request has under way, so that no caller blocks it for others. */
import type { ResonateClient } from "../connection/client.ts";

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

/** The same client with its requests bounded by `fanOut`. Connections are not bounded, as they stay open. */
export function boundedBy(client: ResonateClient, fanOut: FanOut): ResonateClient {
  const send = ((...args: Parameters<ResonateClient["send"]>) =>
    fanOut(() => client.send(...args))) as ResonateClient["send"];
  const call: ResonateClient["call"] = (...args) => fanOut(() => client.call(...args));
  const search: ResonateClient["search"] = (...args) => fanOut(() => client.search(...args));
  const own: Record<string | symbol, unknown> = { send, call, search };
  return new Proxy(client, {
    get(target, name) {
      if (Object.hasOwn(own, name)) return own[name];
      const value = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
