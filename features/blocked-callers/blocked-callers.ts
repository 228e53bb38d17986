import type { Middleware, RequestScope } from "../../core/tools/index.ts";
import { type RefusalOf, refusedCaller } from "../../functions/auth/admission.ts";

/** How often an open stream asks whether its caller is still admitted, in milliseconds. */
const CHECK_INTERVAL_MS = 20_000;

interface Options {
  refusalOf: RefusalOf;
  /** Asks the current deployment; undefined if it cannot be asked. */
  refusalNow: RefusalOf | undefined;
}

/** Refuses callers who are blocked or otherwise not admitted, and ends the streams of a caller who is refused meanwhile. */
export const refuseBlocked = ({ refusalOf, refusalNow }: Options): Middleware =>
  async function refuseIfBlocked(c, next) {
    const { caller, bounds = [] } = c.var;
    const reason = await refusalOf(caller.key);
    if (reason !== undefined) return refusedCaller(reason);
    if (!refusalNow || caller.key === "") return next();
    let checkedAt = Date.now();
    const renew = async (scope: RequestScope) => {
      if (Date.now() - checkedAt < CHECK_INTERVAL_MS) return;
      checkedAt = Date.now();
      if ((await refusalNow(caller.key)) !== undefined) scope.until = 0;
    };
    c.set("bounds", [...bounds, { renew }]);
    return next();
  };
