/**
 * The calls of 2025 that wait in this isolate. A client's `notifications/cancelled` is a separate request: the call is found by its
 * session and the request's id. A call without a session is cancelled by nothing, and one in another isolate is not found.
 */
import type { RequestScope } from "../../core/tools/index.ts";

export class CallsInFlight {
  readonly #calls = new Map<string, Set<AbortController>>();

  /** `signal` aborts when the client cancels the call; `end` removes the call, which has its answer. */
  begin({ session }: RequestScope, id: string | number) {
    const controller = new AbortController();
    const { signal } = controller;
    if (session === undefined) return { signal, end: () => {} };
    const key = keyOf(session, id);
    const calls = this.#calls.get(key) ?? new Set();
    this.#calls.set(key, calls.add(controller));
    const end = () => {
      calls.delete(controller);
      if (calls.size === 0 && this.#calls.get(key) === calls) this.#calls.delete(key);
    };
    return { signal, end };
  }

  /** Cancels the call of the session that a notification names; none if several calls have its id. */
  cancel({ session }: RequestScope, notification: unknown): void {
    const { method, params } = Object(notification) as { method?: unknown; params?: { requestId?: unknown } | null };
    const id = params?.requestId;
    if (method !== "notifications/cancelled" || (typeof id !== "string" && typeof id !== "number")) return;
    const [call, ...others] = (session !== undefined && this.#calls.get(keyOf(session, id))) || [];
    if (others.length === 0) call?.abort();
  }
}

const keyOf = (session: string, id: string | number): string => JSON.stringify([session, id]);
