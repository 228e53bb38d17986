/** Who makes a request, and whether it is one of too many: what MCP and the pages' data have in common. */
import type { Caller } from "../../core/definitions/caller.ts";
import type { RemoteStore } from "../../core/jobs/remote-store.ts";
import { createFanOut } from "../../core/store/pacing/fan-out.ts";
import { addressOf } from "../http/address.ts";
import { tooManyRequests } from "../http/rate-limit.ts";
import type { RequestLine } from "../http/request-line.ts";
import type { Edge } from "./composition.ts";

/** How many tokens of one address may be refused in a minute before no more of its tokens are looked at. */
const MAX_REFUSED = 100;

export interface Identified {
  /** With the token of its session, where it came with one. */
  request: Request;
  caller: Caller;
  scopes: readonly string[];
  /** When its token expires, in milliseconds since the epoch; infinity for one that does not. */
  expires: number;
  /** What its limits go by. */
  key: string;
  /** The jobs, as the caller sees them, for this request alone. */
  store: RemoteStore;
}

/** The answer to an address of which too many tokens have been refused, whatever they were for. */
export function tooManyRefused({ refused }: Edge, address: string): Response | undefined {
  return refused.of(address) < MAX_REFUSED
    ? undefined
    : tooManyRequests(`${MAX_REFUSED} refused tokens`, 1, refused.secondsLeft);
}

/** The caller of a request, which counts as one of his, or the answer that refuses it. */
export async function identify(asked: Request, edge: Edge, line: RequestLine): Promise<Identified | Response> {
  const { auth, rateLimit, refused, store, pages } = edge;
  const request = await pages.withSession(asked);
  const address = addressOf(request);
  const guesses = address !== undefined && auth.presentsToken(request);
  const guessed = guesses ? tooManyRefused(edge, address) : undefined;
  if (guessed) return guessed;
  const authenticated = await auth.authenticate(request);
  if (authenticated instanceof Response) {
    if (guesses && authenticated.status === 401) refused.add(address, 1);
    return authenticated;
  }
  const { caller, scopes, expires = Number.POSITIVE_INFINITY } = authenticated;
  line.caller = caller.label;
  const key = caller.key || (address ?? caller.label);
  // For the request itself, before its body is read; what it asks for is counted when that is known.
  const limited = await rateLimit?.(key, { weight: 1, of: 1 });
  if (limited) return limited;
  return { request, caller, scopes, expires, key, store: store.as(caller, line.requestId, createFanOut()) };
}
