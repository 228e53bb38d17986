import type { Caller } from "../../core/author/index.ts";
import type { Middleware, RequestScope } from "../../core/tools/index.ts";
import { blockedResponse, isBlocked } from "../../functions/auth/blocked.ts";

/** How often an open stream asks whether its caller has been blocked, in milliseconds. */
const CHECK_INTERVAL_MS = 20_000;

interface Options {
  /** The names of the callers who are blocked. */
  blockedNames(): Promise<readonly string[]>;
  /** Asks whether a caller has been blocked since its request was admitted; undefined if that cannot be asked. */
  isBlockedNow: ((caller: Caller) => Promise<boolean>) | undefined;
}

/** Refuses blocked callers, and ends the streams of a caller who is blocked meanwhile. */
export const refuseBlocked = ({ blockedNames, isBlockedNow }: Options): Middleware =>
  async function refuseIfBlocked(c, next) {
    const { caller, bounds = [] } = c.var;
    if (isBlocked(caller, await blockedNames())) return blockedResponse();
    if (!isBlockedNow || caller.key === "") return next();
    let checkedAt = Date.now();
    const renew = async (scope: RequestScope) => {
      if (Date.now() - checkedAt < CHECK_INTERVAL_MS) return;
      checkedAt = Date.now();
      if (await isBlockedNow(caller)) scope.until = 0;
    };
    c.set("bounds", [...bounds, { renew }]);
    return next();
  };
