/**
 * The calls that wait in this isolate. A client's `notifications/cancelled` is a separate request, and there are no sessions:
 * the call is found by its caller, its client's `User-Agent` and the request's id. A call in another isolate is not found, and
 * continues.
 */
import type { RequestScope } from "../../core/tools/index.ts";

export class CallsInFlight {
  readonly #calls = new Map<string, Set<AbortController>>();

  /** `signal` aborts when the client cancels the call; `end` removes the call, which has its answer. */
  begin(scope: RequestScope, id: string | number) {
    const key = keyOf(scope, id);
    const controller = new AbortController();
    const calls = this.#calls.get(key) ?? new Set();
    this.#calls.set(key, calls.add(controller));
    const end = () => {
      calls.delete(controller);
      if (calls.size === 0 && this.#calls.get(key) === calls) this.#calls.delete(key);
    };
    return { signal: controller.signal, end };
  }

  /** Cancels the call that a notification names; none if several calls match, as of clients that look alike. */
  cancel(scope: RequestScope, notification: unknown): void {
    const { method, params } = Object(notification) as { method?: unknown; params?: { requestId?: unknown } | null };
    const id = params?.requestId;
    if (method !== "notifications/cancelled" || (typeof id !== "string" && typeof id !== "number")) return;
    const [call, ...others] = this.#calls.get(keyOf(scope, id)) ?? [];
    if (others.length === 0) call?.abort();
  }
}

const keyOf = ({ client }: RequestScope, id: string | number): string => JSON.stringify([client, id]);
