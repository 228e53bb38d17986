import type { Caller } from "../../core/author/index.ts";
import type { RemoteStore } from "../../core/jobs/index.ts";
import {
  type LimitReached,
  PROTOCOL_REVISION,
  type RequestBound,
  type RequestCost,
  type RequestLog,
  type RequestScope,
  type StreamSlot,
  type Visit,
} from "../../core/tools/index.ts";
import { isStream, MAX_STREAM_MS } from "./event-stream.ts";

/** The ids of sessions that are accepted: any well-formed one, as none is stored. */
const SESSION_ID_PATTERN = /^[\x21-\x7e]{1,1000}$/;

/** The request of an admitted caller, within the bounds that middleware has set. */
class CallerRequest implements RequestScope {
  readonly caller: Caller;
  readonly requestLog: RequestLog;
  readonly limitKey: () => string;
  readonly request: Request;
  readonly waitUntil: RequestScope["waitUntil"];
  readonly #bounds: readonly RequestBound[];
  store: RemoteStore;
  until: number;
  cancelled?: AbortSignal;
  /** Whether a stream has been opened as its answer. */
  hasStream = false;

  constructor(
    { req, var: { caller, requestLog, expires, limitKey, requester, bounds = [] } }: Visit,
    store: RemoteStore,
    waitUntil: RequestScope["waitUntil"],
  ) {
    this.caller = caller;
    this.requestLog = requestLog;
    this.limitKey = limitKey;
    this.request = req.raw;
    this.waitUntil = waitUntil;
    this.store = store.as(caller, requestLog.requestId, requester);
    this.until = Math.min(Date.now() + MAX_STREAM_MS, expires);
    this.#bounds = bounds;
  }

  get session(): string | undefined {
    const { headers } = this.request;
    const id = headers.get("mcp-session-id") ?? "";
    const isOfSession = SESSION_ID_PATTERN.test(id) && headers.get("mcp-protocol-version") !== PROTOCOL_REVISION;
    return isOfSession ? JSON.stringify([this.limitKey(), id]) : undefined;
  }

  async checkLimits(cost: RequestCost): Promise<Response | undefined> {
    for (const bound of this.#bounds) {
      const refusal = (await bound.check?.(cost)) ?? (cost.streams ? bound.checkStream?.(this) : undefined);
      if (refusal) return refusal;
    }
    return undefined;
  }

  async charge(): Promise<LimitReached | undefined> {
    for (const bound of this.#bounds) {
      const limitReached = await bound.charge?.(this);
      if (limitReached) return limitReached;
    }
    return undefined;
  }

  slot(): StreamSlot {
    this.hasStream = true;
    for (const bound of this.#bounds) bound.open?.(this);
    return this;
  }

  renew(): void {
    for (const bound of this.#bounds) bound.renew?.(this);
  }

  release(): void {
    for (const bound of this.#bounds) bound.release?.(this);
  }
}

/** What answers the requests of callers. */
export interface CallerService {
  serve(request: Request, scope: RequestScope): Promise<Response>;
}

/** Serves the request of an admitted caller. `store`: the jobs of the deployment. */
export async function serveCaller(c: Visit, store: RemoteStore, service: CallerService): Promise<Response> {
  const scope = new CallerRequest(c, store, (work) => c.executionCtx.waitUntil(work));
  let response: Response | undefined;
  try {
    response = await service.serve(c.req.raw, scope);
    return response;
  } finally {
    // A stream releases the request when it ends.
    if (!scope.hasStream || !response || !isStream(response)) scope.release();
  }
}
