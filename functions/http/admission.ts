/** Identifies the caller of a request and applies the caller's limits, for MCP and for the pages' data alike. */

import type { RequestScope, StreamSlot } from "../../core/tools/request-scope.ts";
import { ToolError } from "../../core/tools/tool.ts";
import { blockedResponse, isBlocked } from "../auth/blocked.ts";
import type { Edge, Identified } from "../parts.ts";
import { clientAddress } from "./client-address.ts";
import { isStream, LONGEST_STREAM } from "./event-stream.ts";
import { limitedResponse } from "./rate-limit.ts";
import type { RequestLog } from "./request-log.ts";

/** How many calls to the Resonate server one unit of weight pays for: a look at a running job takes two or three. */
const CALLS = 3;

/** How often an open stream asks whether its caller has been blocked, in milliseconds. */
const BLOCKS = 20_000;

export async function identify(received: Request, edge: Edge, line: RequestLog): Promise<Identified | Response> {
  const { auth, rateLimit, refused, store, pages } = edge;
  const request = await pages.withSession(received);
  const guesses = auth.presentsToken(request);
  const tooMany = guesses ? refused.tooMany(request) : undefined;
  if (tooMany) return tooMany;
  const authenticated = await auth.authenticate(request);
  if (authenticated instanceof Response) {
    if (guesses && authenticated.status === 401) refused.add(request);
    return authenticated;
  }
  const { caller, scopes, expires = Number.POSITIVE_INFINITY } = authenticated;
  line.caller = caller.label;
  const { blocked } = await edge.settings();
  if (isBlocked(caller, blocked)) return blockedResponse();
  const key = caller.key || (clientAddress(request) ?? caller.label);
  // The request itself, before its body is read; the rest of its weight is charged once it is known.
  const limited = await rateLimit?.(key, { weight: 1 });
  if (limited) return limitedResponse(limited);
  const own = store.as(caller, line.requestId, {
    traceparent: () => line.traceparent,
    async chargeStarts(count) {
      const tooMany = await rateLimit?.(key, { weight: count - 1, of: count });
      if (tooMany) throw new ToolError(tooMany.words);
    },
  });
  return { request, caller, scopes, expires, key, store: own };
}

/** Answers an identified caller's MCP request within the caller's limits. */
export async function answerMcp(
  { request, caller, scopes, expires, key, store }: Identified,
  { auth, rateLimit, slots, callers, mcp }: Edge,
  line: RequestLog,
  waitUntil: RequestScope["waitUntil"],
): Promise<Response> {
  let slot: StreamSlot | undefined;
  let paid = 1;
  /** Charges what the request has taken beyond its weight. */
  const pay = async () => {
    const weight = Math.ceil(store.calls / CALLS) - paid;
    if (weight <= 0) return undefined;
    paid += weight;
    return rateLimit?.(key, { weight, of: paid, isDone: true });
  };
  const release = () => {
    slot?.release();
    slot = undefined;
    void pay();
  };
  let until = Math.min(Date.now() + LONGEST_STREAM, expires);
  let asked = Date.now();
  /** Called while a stream is open. */
  const renew = () => {
    slot?.renew();
    void pay();
    if (!callers || caller.key === "" || Date.now() - asked < BLOCKS) return;
    asked = Date.now();
    callers.isBlocked(caller).then((is) => {
      if (is) until = 0;
    });
  };
  const scope: RequestScope = {
    caller,
    store,
    line,
    client: JSON.stringify([key, request.headers.get("user-agent")]),
    waitUntil,
    get until() {
      return until;
    },
    request,
    slot() {
      slot ??= slots.enter(key);
      return { renew, release };
    },
    charge: pay,
    async checkLimits({ weight, access, streams }) {
      paid = Math.max(paid, weight);
      const limited = weight > 1 ? await rateLimit?.(key, { weight: weight - 1, of: weight }) : undefined;
      const refusal = limited ? limitedResponse(limited) : await auth.authorize(request, scopes, access);
      if (refusal || !streams) return refusal;
      slot = slots.take(key);
      return slot ? undefined : slots.refusal();
    },
  };
  let response: Response | undefined;
  try {
    response = await mcp(request, scope);
    return response;
  } finally {
    // The rest of a stream is charged when it ends.
    if (!response || !isStream(response)) release();
  }
}
