/**
 * How often a stream says that it is alive, in milliseconds. A caller that has gone away is noticed when something is
 * written to it, so this is also how long work goes on for nobody.
 */
export const KEEP_ALIVE = 2_000;

const encoder = new TextEncoder();

/** A server-sent event stream of what `run` sends, until it is done; `signal` aborts when the caller goes away. */
export function eventStream(
  run: (send: (message: object) => void, signal: AbortSignal) => Promise<void>,
  disconnected: AbortSignal,
): Response {
  const left = new AbortController();
  const signal = AbortSignal.any([left.signal, disconnected]);
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const write = (text: string) => {
        try {
          controller.enqueue(encoder.encode(text));
        } catch {
          left.abort();
        }
      };
      const keepAlive = setInterval(() => write(": keepalive\n\n"), KEEP_ALIVE);
      run((message) => write(`event: message\ndata: ${JSON.stringify(message)}\n\n`), signal)
        .finally(() => {
          clearInterval(keepAlive);
          if (!left.signal.aborted) controller.close();
        })
        .catch(() => left.abort());
    },
    cancel: () => left.abort(),
  });
  return new Response(body, { headers: HEADERS });
}

/** No proxy in between is to change the stream or to hold it back; the last is for nginx. */
const HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};
