/** The methods of the Events extension: `events/list`, `events/poll` and `events/stream`. */
import * as z from "zod";
import type { Caller } from "../../core/definitions/caller.ts";
import { ResonateUnavailable } from "../../core/store/failures.ts";
import { pause } from "../../core/store/pacing/backoff.ts";
import { ErrorCode, ProtocolError, SUBSCRIPTION_ID } from "../../core/tools/mcp.ts";
import type { CallerEvents, EventQuery } from "../caller/callers.ts";
import { eventStream } from "../http/event-stream.ts";
import type { RequestScope } from "../http/scope.ts";
import { type EventType, eventTypes, Narrowing } from "./event-types.ts";

/** The key under which the extension is declared. */
export const EVENTS = "io.modelcontextprotocol/events";

/** The extension's error codes, as the SEP has them and as the sketch before it had them. */
const CODES = {
  sep: { NotFound: -32023, Unsupported: -32026 },
  sketch: { NotFound: -32011, Unsupported: -32014 },
} as const;

/** How many events one answer holds, and by default. */
const MOST = { events: 100, byDefault: 50 };

/** When to poll again, in milliseconds: while jobs are under way, and else. */
const NEXT_POLL = { busy: 5_000, idle: 30_000 };

/** How often a stream tells how far it has read, in milliseconds. */
const HEARTBEAT = 20_000;

/** The pause after a failure to read, in milliseconds. */
const AFTER_ERROR = 2_000;

/** How long before its deadline a stream ends by itself, in milliseconds. */
const BEFORE_END = 1_000;

const Subscription = z.object({
  name: z.string(),
  arguments: Narrowing.default({}),
  cursor: z.string().nullish(),
  maxAgeMs: z.int().min(0).optional(),
  maxEvents: z.int().min(1).optional(),
});

export interface EventsOptions {
  events: CallerEvents;
  codes: keyof typeof CODES;
}

export class Events {
  readonly #events: CallerEvents;
  readonly #codes: (typeof CODES)[keyof typeof CODES];
  readonly #types: readonly EventType[] = eventTypes();

  constructor({ events, codes }: EventsOptions) {
    this.#events = events;
    this.#codes = CODES[codes];
  }

  list(): Record<string, unknown> {
    return { events: this.#types };
  }

  /** @throws {ProtocolError} for a request that is not valid */
  async poll(params: Record<string, unknown>, caller: Caller): Promise<Record<string, unknown>> {
    const page = await this.#events(caller, this.#queryOf(params));
    const { truncated, hasMore, isBusy } = page;
    const events = page.events.map(({ cursor: _, ...event }) => event);
    const nextPollMs = isBusy ? NEXT_POLL.busy : NEXT_POLL.idle;
    return { events, cursor: page.cursor, truncated, hasMore, nextPollMs };
  }

  /** An empty result for a request that a stream may answer. @throws {ProtocolError} for any other */
  check(params: Record<string, unknown>): Record<string, unknown> {
    this.#queryOf(params);
    return {};
  }

  /** A stream of events until its deadline, or until the caller leaves. */
  stream(
    id: string | number,
    params: Record<string, unknown>,
    scope: RequestScope,
    disconnected: AbortSignal,
  ): Response {
    let query = this.#queryOf(params);
    return eventStream(
      async (send, signal) => {
        const _meta = { [SUBSCRIPTION_ID]: id };
        const notify = (name: string, told: object) =>
          send({ jsonrpc: "2.0", method: `notifications/events/${name}`, params: { ...told, _meta } });
        const read = async (wait: number) => {
          const page = await this.#events(scope.caller, { ...query, wait });
          query = { ...query, cursor: page.cursor, maxAgeMs: undefined };
          return page;
        };
        let isActive = false;
        let wait = 0;
        for (let left = 1; left > 0 && !signal.aborted; left = scope.until - BEFORE_END - Date.now()) {
          try {
            const page = await read(Math.min(wait, left));
            if (signal.aborted) return;
            if (!isActive || page.truncated) notify("active", { cursor: page.from, truncated: page.truncated });
            else if (page.events.length === 0) notify("heartbeat", { cursor: page.cursor });
            isActive = true;
            for (const event of page.events) notify("event", event);
            wait = page.hasMore ? 0 : HEARTBEAT;
          } catch (error) {
            if (!(error instanceof ResonateUnavailable)) throw error;
            const { message } = error;
            notify("error", { error: { code: ErrorCode.InternalError, message: `the Resonate server: ${message}` } });
            await pause(AFTER_ERROR, signal);
          }
        }
        send({ jsonrpc: "2.0", id, result: { resultType: "complete", _meta } });
      },
      disconnected,
      scope,
    );
  }

  #queryOf(params: Record<string, unknown>): EventQuery {
    const { name } = params;
    if (typeof name === "string" && !this.#types.some((type) => type.name === name)) {
      const known = this.#types.map((type) => type.name).join(", ");
      const message = `NotFound: no event type has this name. There are: ${known}`;
      throw new ProtocolError(this.#codes.NotFound, message, { kind: "event" });
    }
    const { data, error } = Subscription.safeParse(params);
    if (!data) {
      const found = error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; ");
      throw new ProtocolError(ErrorCode.InvalidParams, `Invalid params: ${found}`.slice(0, 500));
    }
    const { arguments: narrowing, cursor = null, maxAgeMs, maxEvents = MOST.byDefault } = data;
    const { job_names: jobNames, kinds } = narrowing;
    return { name: data.name, jobNames, kinds, cursor, maxAgeMs, limit: Math.min(maxEvents, MOST.events) };
  }
}
