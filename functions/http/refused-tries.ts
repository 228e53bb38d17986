import type { Middleware } from "../../core/tools/index.ts";
import { clientAddress } from "./client-address.ts";
import { Counts, limitedResponse, tooManyRequests } from "./limits.ts";

/** How many tries from one address may be refused in a period. After that, further ones are not looked at. */
const MAX_REFUSED = 100;

/**
 * Counts refused tokens and void addresses, by the address that sent them. If the address is not known nothing is counted: all
 * clients would share one count, and a stranger could shut everybody out.
 */
export class RefusedTries {
  readonly #counts = new Counts();

  add(request: Request): void {
    const address = clientAddress(request);
    if (address !== undefined) this.#counts.add(address, 1);
  }

  /** The response to an address from which too many have been refused. */
  tooMany(request: Request): Response | undefined {
    const address = clientAddress(request);
    return address === undefined || this.#counts.of(address) < MAX_REFUSED
      ? undefined
      : limitedResponse(tooManyRequests(`${MAX_REFUSED} refused tokens`, 1, this.#counts.secondsLeft));
  }
}

/** Counts the refusals of a public route, and refuses addresses with too many of them. */
export const limitTries = (tries: RefusedTries): Middleware =>
  async function limitTriesOf(c, next) {
    const tooMany = tries.tooMany(c.req.raw);
    if (tooMany) return tooMany;
    await next();
    if (c.res.status === 401) tries.add(c.req.raw);
  };
