/** How many event streams a caller may have open at once, in this isolate. */
import type { StreamSlot } from "../../core/tools/request-scope.ts";

/**
 * How long a slot is held without being renewed, in milliseconds. It is renewed while the stream is alive, because nothing reports
 * the end of a request that the platform has cancelled.
 */
const SLOT_TIMEOUT_MS = 6_000;

export class StreamSlots {
  readonly #most: number;
  /** By caller: until when each slot is held, in milliseconds since the epoch. */
  readonly #slots = new Map<string, Map<symbol, number>>();

  /** @param most the streams that one caller may have; 0 for any number */
  constructor(most: number) {
    this.#most = most;
  }

  /** A slot for one more stream; undefined when the caller has all that it may have. */
  take(caller: string): StreamSlot | undefined {
    const now = Date.now();
    const slots = this.#slots.get(caller);
    for (const [id, until] of slots ?? []) if (until < now) slots?.delete(id);
    return this.#most > 0 && (slots?.size ?? 0) >= this.#most ? undefined : this.enter(caller);
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
    const error_description = `Nothing was done: too many streams; a caller may have ${this.#most} open at once. Await several jobs with one call, and end streams that are not read. Try again in 5 seconds.`;
    const body = { error: "too_many_streams", error_description };
    return Response.json(body, { status: 429, headers: { "retry-after": "5" } });
  }
}
