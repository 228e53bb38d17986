/** How many event streams a caller may have open at once, in this isolate. */
import type { Middleware, RequestBound, RequestScope, StreamSlot } from "../../core/tools/index.ts";

/**
 * How long a slot is held without being renewed, in milliseconds. It is renewed while the stream is alive, because nothing reports
 * the end of a request that the platform has cancelled.
 */
const SLOT_TIMEOUT_MS = 6_000;

export class StreamSlots {
  readonly #max: number;
  /** By caller: until when each slot is held, in milliseconds since the epoch. */
  readonly #slots = new Map<string, Map<symbol, number>>();

  /** @param max the streams that one caller may have */
  constructor(max: number) {
    this.#max = max;
  }

  /** A slot for one more stream; undefined when the caller has all that it may have. */
  take(caller: string): StreamSlot | undefined {
    const now = Date.now();
    const slots = this.#slots.get(caller);
    for (const [id, until] of slots ?? []) if (until < now) slots?.delete(id);
    return (slots?.size ?? 0) >= this.#max ? undefined : this.enter(caller);
  }

  /** A slot for a stream that is already open, even above the limit. */
  enter(caller: string): StreamSlot {
    const slots = this.#slots.get(caller) ?? new Map<symbol, number>();
    this.#slots.set(caller, slots);
    const id = Symbol("stream");
    const renew = () => void slots.set(id, Date.now() + SLOT_TIMEOUT_MS);
    renew();
    return {
      renew,
      release: () => {
        slots.delete(id);
        if (slots.size === 0 && this.#slots.get(caller) === slots) this.#slots.delete(caller);
      },
    };
  }

  refusal(): Response {
    const error_description = `Nothing was done: too many streams; a caller may have ${this.#max} open at once. Await several jobs with one call, and end streams that are not read. Try again in 5 seconds.`;
    const body = { error: "too_many_streams", error_description };
    return Response.json(body, { status: 429, headers: { "retry-after": "5" } });
  }
}

/** Gives each answer that is a stream a slot of its caller. */
export function limitStreams(slots: StreamSlots): Middleware {
  const bound = new StreamBound(slots);
  return function limitStreamsOf(c, next) {
    const { bounds = [] } = c.var;
    c.set("bounds", [...bounds, bound]);
    return next();
  };
}

class StreamBound implements RequestBound {
  readonly #slots: StreamSlots;
  /** The slots of requests whose answers are streams, or may become streams. */
  readonly #taken = new WeakMap<RequestScope, StreamSlot>();

  constructor(slots: StreamSlots) {
    this.#slots = slots;
  }

  checkStream(scope: RequestScope): Response | undefined {
    const slot = this.#slots.take(scope.limitKey());
    if (!slot) return this.#slots.refusal();
    this.#taken.set(scope, slot);
    return undefined;
  }

  open(scope: RequestScope): void {
    if (!this.#taken.has(scope)) this.#taken.set(scope, this.#slots.enter(scope.limitKey()));
  }

  renew(scope: RequestScope): void {
    this.#taken.get(scope)?.renew();
  }

  release(scope: RequestScope): void {
    this.#taken.get(scope)?.release();
    this.#taken.delete(scope);
  }
}
