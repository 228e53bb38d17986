import type { Caller } from "../../core/author/caller.ts";
import type { RemoteStore } from "../../core/jobs/remote-store.ts";
import type {
  LimitReached,
  RequestBound,
  RequestCost,
  RequestLine,
  RequestScope,
  StreamSlot,
} from "../../core/tools/request-scope.ts";
import type { Visit } from "../../core/tools/route.ts";
import { isStream, MAX_STREAM_MS } from "./event-stream.ts";

/** The request of an admitted caller, within the bounds that middleware has set. */
class CallerRequest implements RequestScope {
  readonly caller: Caller;
  readonly line: RequestLine;
  readonly request: Request;
  readonly client: string;
  readonly waitUntil: RequestScope["waitUntil"];
  readonly #bounds: readonly RequestBound[];
  store: RemoteStore;
  until: number;
  cancelled?: AbortSignal;

  constructor(
    { req, var: { caller, line, expires, limitKey, requester, bounds = [] } }: Visit,
    store: RemoteStore,
    waitUntil: RequestScope["waitUntil"],
  ) {
    this.caller = caller;
    this.line = line;
    this.request = req.raw;
    this.client = JSON.stringify([limitKey, req.header("user-agent") ?? null]);
    this.waitUntil = waitUntil;
    this.store = store.as(caller, line.requestId, requester);
    this.until = Math.min(Date.now() + MAX_STREAM_MS, expires);
    this.#bounds = bounds;
  }

  async checkLimits(cost: RequestCost): Promise<Response | undefined> {
    for (const bound of this.#bounds) {
      const refusal = await bound.check?.(cost);
      if (refusal) return refusal;
    }
    return undefined;
  }

  async charge(): Promise<LimitReached | undefined> {
    for (const bound of this.#bounds) {
      const limited = await bound.charge?.(this);
      if (limited) return limited;
    }
    return undefined;
  }

  slot(): StreamSlot {
    for (const bound of this.#bounds) bound.open?.();
    return this;
  }

  renew(): void {
    for (const bound of this.#bounds) bound.renew?.(this);
    void this.charge();
  }

  /** Ends the request. The rest of what it has taken is charged. */
  release(): void {
    for (const bound of this.#bounds) bound.release?.();
    void this.charge();
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
    // The rest of a stream is charged when it ends.
    if (!response || !isStream(response)) scope.release();
  }
}
