/** Establishes the caller of a request. */
import { ANYONE } from "../../core/author/index.ts";
import type { Middleware, Visit } from "../../core/tools/index.ts";
import { clientAddress } from "../http/client-address.ts";
import type { RefusedTries } from "../http/refused-tries.ts";
import type { Auth } from "./auth.ts";
import type { Verified } from "./refusal.ts";

/** Admits everybody as one caller, who may do everything. The limits count for each address. */
export const admitAnyone: Middleware = function admitAnyoneAs(c, next) {
  admit(c, { caller: ANYONE, scopes: [] }, () => clientAddress(c.req.raw) ?? ANYONE.label);
  return next();
};

/** Admits the callers of good tokens. An address with too many bad ones is refused without a look at its tokens. */
export const authenticate = (auth: Auth, tries: RefusedTries): Middleware =>
  async function admitCaller(c, next) {
    const request = c.req.raw;
    const isGuess = presentsToken(request);
    const tooMany = isGuess ? tries.tooMany(request) : undefined;
    if (tooMany) return tooMany;
    const verified = await auth.authenticate(request);
    if (verified instanceof Response) {
      if (isGuess && verified.status === 401) tries.add(request);
      return verified;
    }
    admit(c, verified, () => verified.caller.key);
    return next();
  };

/** Checks the token's scopes once it is known what a request does. */
export const authorize = (check: NonNullable<Auth["authorize"]>): Middleware =>
  function authorizeRequest(c, next) {
    const { scopes, bounds = [] } = c.var;
    c.set("bounds", [...bounds, { check: ({ access }) => check(c.req.raw, scopes, access) }]);
    return next();
  };

/** Whether a request carries something that may be a token. */
export const presentsToken = ({ headers }: Request): boolean => headers.has("authorization");

function admit(
  c: Visit,
  { caller, scopes, expires = Number.POSITIVE_INFINITY }: Verified,
  limitKey: () => string,
): void {
  c.set("caller", caller);
  c.set("scopes", scopes);
  c.set("expires", expires);
  c.set("limitKey", limitKey);
  c.var.requestLog.caller = caller.label;
}
