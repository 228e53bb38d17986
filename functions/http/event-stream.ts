import type { StreamPlace } from "./streams.ts";

/**
 * How often a stream says that it is alive, in milliseconds. A caller that has gone away is noticed when something is
 * written to it, so this is also how long work goes on for nobody.
 */
export const KEEP_ALIVE = 2_000;

/** How long what is being said when a stream's time is up may take, in milliseconds. */
export const LAST_WORDS = 3_000;

const encoder = new TextEncoder();

/** A stream's time, and its place among those of its caller. */
export interface StreamTerms {
  /** When it ends at the latest, in milliseconds since the epoch. */
  until: number;
  place(): StreamPlace;
}

/** Streams that end in time and give their place back by themselves: another one around each takes memory. */
const bounded = new WeakSet<Response>();

export const isBounded = (response: Response): boolean => bounded.has(response);

/**
 * A server-sent event stream of what `run` sends, until it is done or its time is up; `signal` aborts then, and when the
 * caller goes away.
 */
export function eventStream(
  run: (send: (message: object) => void, signal: AbortSignal) => Promise<void>,
  disconnected: AbortSignal,
  terms: StreamTerms,
): Response {
  const left = new AbortController();
  const signal = AbortSignal.any([left.signal, disconnected]);
  const place = terms.place();
  let keepAlive: ReturnType<typeof setInterval> | undefined;
  const end = () => {
    clearInterval(keepAlive);
    place.release();
  };
  const leave = () => {
    left.abort();
    end();
  };
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const write = (text: string) => {
        try {
          controller.enqueue(encoder.encode(text));
        } catch {
          left.abort();
        }
      };
      keepAlive = setInterval(() => {
        place.renew();
        if (Date.now() < terms.until + LAST_WORDS) return write(": keepalive\n\n");
        if (!left.signal.aborted) controller.close();
        leave();
      }, KEEP_ALIVE);
      run((message) => write(`event: message\ndata: ${JSON.stringify(message)}\n\n`), signal)
        .finally(() => {
          end();
          if (!left.signal.aborted) controller.close();
        })
        .catch(leave);
    },
    cancel: leave,
  });
  const response = new Response(body, { headers: HEADERS });
  bounded.add(response);
  return response;
}

/** No proxy in between is to change the stream or to hold it back; the last is for nginx. */
const HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};
