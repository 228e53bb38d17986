/** The body of a download, which ends if nobody reads it. */
import type { StreamSlot } from "../../core/tools/index.ts";
import { keepOpen, MAX_STALL_MS } from "../../functions/http/event-stream.ts";

/**
 * A body of these bytes, through a stream of their length. Each chunk is sent before the next one is read, which may go into the same
 * buffer.
 */
export function bodyOf(
  bytes: AsyncGenerator<Uint8Array>,
  { readable, writable }: TransformStream<Uint8Array, Uint8Array>,
  slot: StreamSlot,
): ReadableStream<Uint8Array> {
  const writer = writable.getWriter();
  const stalled = Promise.withResolvers<never>();
  stalled.promise.catch(() => {}); // It is awaited with each write.
  let readAt = performance.now();
  const terms = { until: Number.POSITIVE_INFINITY, slot: () => slot };
  const release = keepOpen(terms, () => {
    if (performance.now() - readAt >= MAX_STALL_MS) stalled.reject(new Error("The download is not read."));
  });
  const write = async () => {
    for await (const each of bytes) {
      await Promise.race([writer.write(each), stalled.promise]);
      readAt = performance.now();
    }
    await writer.close();
  };
  // A reader that has left need not learn of an error.
  const abort = (error: unknown) => void writer.abort(error).catch(() => {});
  void write().catch(abort).finally(release);
  return readable;
}
