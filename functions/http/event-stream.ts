/** Server-sent event streams: they keep the connection alive, end in time and hold a slot of their caller. */
import type { StreamTerms } from "../../core/tools/index.ts";

/**
 * How often a stream sends a keep-alive, in milliseconds. Writing is the only way to notice that a caller has left, so this
 * also bounds how long work continues for nobody.
 */
export const KEEP_ALIVE_MS = 2_000;

/** How long a stream may be open, in milliseconds. */
export const MAX_STREAM_MS = 15 * 60_000;

/** How long a message that is being sent at the deadline may take, in milliseconds. */
const LAST_MESSAGE_MS = 3_000;

const encoder = new TextEncoder();

/**
 * Holds the slot of a stream that opens now, and calls `onTick` again and again with whether its deadline has passed. Returns a
 * function that ends this.
 */
function keepOpen(terms: StreamTerms, onTick: (isOver: boolean) => void): () => void {
  const slot = terms.slot();
  // Measured by a clock that nobody sets, since a test may move `Date`.
  const end = performance.now() + terms.until - Date.now() + LAST_MESSAGE_MS;
  const ticker = setInterval(() => {
    slot.renew();
    onTick(terms.until === 0 || performance.now() >= end);
  }, KEEP_ALIVE_MS);
  return () => {
    clearInterval(ticker);
    slot.release();
  };
}

/**
 * A response that streams what `run` sends, until `run` is done or the deadline has passed. `signal` aborts at the deadline
 * and when the caller disconnects. `onCut` sends the last messages of a stream that is closed before it has ended by itself.
 * `alive` is the text of a keep-alive.
 */
export function eventStream(
  run: (send: (message: object) => void, signal: AbortSignal) => Promise<void>,
  disconnected: AbortSignal,
  terms: StreamTerms,
  onCut?: (send: (message: object) => void) => void,
  alive = ": keepalive\n\n",
): Response {
  const left = new AbortController();
  const signal = AbortSignal.any([left.signal, disconnected]);
  let end = () => {};
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
      const send = (message: object) => write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
      end = keepOpen(terms, (isOver) => {
        if (!isOver) return write(alive);
        if (!left.signal.aborted) {
          onCut?.(send);
          controller.close();
        }
        leave();
      });
      run(send, signal)
        .finally(() => {
          end();
          if (!left.signal.aborted) controller.close();
        })
        .catch(leave);
    },
    cancel: leave,
  });
  return new Response(body, { headers: STREAM_HEADERS });
}

/** Proxies must neither change the stream nor buffer it; the last header is for nginx. */
const STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};

export const isStream = (response: Response): boolean =>
  response.body !== null && response.headers.get("content-type")?.startsWith("text/event-stream") === true;

/** Applies the terms to a response of the SDK if it is a stream. `onEnd` is called when the response is complete. */
export function boundedStream(response: Response, terms: StreamTerms, onEnd = () => {}): Response {
  if (!isStream(response)) {
    onEnd();
    return response;
  }
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  let isStopped = false;
  const leave = keepOpen(terms, (isOver) => {
    if (!isOver) return;
    isStopped = true;
    reader.cancel().catch(() => {});
  });
  const end = () => {
    leave();
    onEnd();
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
        if (isStopped) controller.close();
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
