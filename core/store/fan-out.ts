/** How many calls to the Resonate server one request may have under way: what a caller asks for must not take it from others. */
import type { ResonateClient } from "./client.ts";

/** What a request has under way at most. */
const MOST = 16;

/** Runs what it is given, so many at a time; the rest waits its turn. One request's own: requests share no promises. */
export type FanOut = <Result>(run: () => Promise<Result>) => Promise<Result>;

export function createFanOut(most = MOST): FanOut {
  const waiting: (() => void)[] = [];
  let free = most;
  return async (run) => {
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
}

/** The same client, whose requests take turns by `fanOut`. A connection that is opened takes no turn: it stays. */
export function takingTurns(client: ResonateClient, fanOut: FanOut): ResonateClient {
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
