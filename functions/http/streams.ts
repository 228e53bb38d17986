/** Event streams to clients: how many a caller has, and until when each is open. */
import { KEEP_ALIVE, LAST_WORDS } from "./event-stream.ts";

/** How long a stream is open at most, in milliseconds. */
export const LONGEST_STREAM = 15 * 60_000;

/**
 * A stream's place among those of its caller. It is the stream's for a moment only, and renewed while the stream is there:
 * of one whose request the platform has ended nobody may hear.
 */
export interface StreamPlace {
  renew(): void;
  release(): void;
}

/** The streams that this isolate has open, by caller. */
export class Streams {
  readonly #most: number;
  /** By caller: until when each place is taken, in milliseconds since the epoch. */
  readonly #places = new Map<string, Map<symbol, number>>();

  /** @param most how many one caller may have; 0 for any number */
  constructor(most: number) {
    this.#most = most;
  }

  /** A place for one stream more; undefined when the caller has as many as it may. */
  take(key: string): StreamPlace | undefined {
    const now = Date.now();
    const places = this.#places.get(key);
    for (const [id, until] of places ?? []) if (until < now) places?.delete(id);
    return this.#most > 0 && (places?.size ?? 0) >= this.#most ? undefined : this.enter(key);
  }

  /** A place for a stream that is open already. */
  enter(key: string): StreamPlace {
    const places = this.#places.get(key) ?? new Map<symbol, number>();
    this.#places.set(key, places);
    const id = Symbol("stream");
    const renew = () => void places.set(id, Date.now() + 3 * KEEP_ALIVE);
    renew();
    return {
      renew,
      release: () => {
        places.delete(id);
        if (places.size === 0 && this.#places.get(key) === places) this.#places.delete(key);
      },
    };
  }

  /** The answer to one stream too many. */
  refusal(): Response {
    const error_description = `Nothing was done: too many streams; a caller may have ${this.#most} open at once. Await several jobs with one call, and end streams that are not read. Try again in 5 seconds.`;
    return Response.json(
      { error: "too_many_streams", error_description },
      { status: 429, headers: { "retry-after": "5" } },
    );
  }
}

export const isStream = (response: Response): boolean =>
  response.body !== null && response.headers.get("content-type")?.startsWith("text/event-stream") === true;

/** A stream that ends at `until`, in milliseconds since the epoch, if not before; it has `place` until then. */
export function boundedStream(response: Response, place: StreamPlace, until: number): Response {
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const renewing = setInterval(() => place.renew(), KEEP_ALIVE);
  let isUp = false;
  const ending = setTimeout(
    () => {
      isUp = true;
      reader.cancel().catch(() => {});
    },
    Math.max(0, until - Date.now()) + LAST_WORDS,
  );
  const end = () => {
    clearInterval(renewing);
    clearTimeout(ending);
    place.release();
  };
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        end();
        controller.close();
      } catch (error) {
        end();
        if (isUp) controller.close();
        else controller.error(error);
      }
    },
    cancel(reason) {
      end();
      return reader.cancel(reason);
    },
  });
  return new Response(body, response);
}
