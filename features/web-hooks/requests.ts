/** What clients ask for about their subscriptions by web hook, and the answers. */
import type { Caller } from "../../core/author/index.ts";
import type { EventQuery } from "../../core/jobs/index.ts";

/** What a client subscribes to, and where it wants it delivered. */
export interface HookRequest extends Omit<EventQuery, "limit"> {
  url: string;
  secret: string;
  ttlMs?: number | null | undefined;
}

export type HookKey = Pick<HookRequest, "name" | "filter" | "url">;

export interface Grant {
  id: string;
  refreshBefore: string;
  cursor: string;
  truncated: boolean;
  deliveryStatus?: object;
}

/** Why a request was not granted: an error of the extension. */
export interface Refusal {
  refused: "NotFound" | "ResourceExhausted" | "CallbackEndpointError" | "InvalidUrl";
  data: Record<string, unknown>;
}

/** Why a subscription has ended, in the extension's codes. */
export interface SubscriptionError {
  code: number;
  message: string;
  data: Record<string, unknown>;
}

/** The remote methods of the web hooks in a caller's object. */
export interface WebHookMethods {
  subscribe(caller: Caller, request: HookRequest): Promise<Grant | Refusal>;
  unsubscribe(caller: Caller, key: HookKey): Promise<object | Refusal>;
}
