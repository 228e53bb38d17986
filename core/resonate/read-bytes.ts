/** Reads request bodies within limits of size and time. */

/** How long a body may take to arrive, in milliseconds: on one machine, each slow one holds a connection. */
export const BODY_TIMEOUT_MS = 30_000;

/** How much of a refused body is read, in bytes, and for how long, in milliseconds. */
const MAX_DRAINED_BYTES = 16_000_000;
const DRAIN_TIMEOUT_MS = 5_000;

/** The result of `reading`, or status 408 after `BODY_TIMEOUT_MS`. */
async function inTime<T>(reading: Promise<T>): Promise<T | 408> {
  let stop = () => {};
  const late = new Promise<408>((resolve) => {
    const timer = setTimeout(() => resolve(408), BODY_TIMEOUT_MS);
    stop = () => clearTimeout(timer);
  });
  return Promise.race([reading, late]).finally(stop);
}

/** The body of at most `maxBytes` bytes, or the status that refuses it. A large one is drained. */
export async function readBytes(request: Request, maxBytes: number): Promise<Uint8Array<ArrayBuffer> | 408 | 413> {
  const declaredLength = Number(request.headers.get("content-length") ?? Number.NaN);
  // A body of declared length cannot be longer. Reading it piece by piece would take several times the processor time.
  if (declaredLength <= maxBytes) {
    const content = await inTime(request.arrayBuffer());
    return content === 408 ? content : new Uint8Array(content);
  }
  const reader = request.body?.getReader();
  const read = async (): Promise<Uint8Array<ArrayBuffer> | 413> => {
    const chunks: Uint8Array<ArrayBuffer>[] = [];
    for (let size = 0; reader;) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.byteLength;
      if (size > maxBytes) return 413;
      chunks.push(value as Uint8Array<ArrayBuffer>);
    }
    return new Uint8Array(await new Blob(chunks).arrayBuffer());
  };
  const body = declaredLength > maxBytes ? 413 : await inTime(read());
  if (body === 413 && reader) await drain(reader);
  if (body === 408) reader?.cancel().catch(() => {});
  return body;
}

/** Drains the body of a request that has been refused unread. */
export async function drainUnread({ body, bodyUsed }: Request): Promise<void> {
  if (body && !bodyUsed) await drain(body.getReader());
}

/** Drains a refused body: a client whose connection ends while it still sends may never read the response. */
async function drain(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  const limit = setTimeout(() => void reader.cancel().catch(() => {}), DRAIN_TIMEOUT_MS);
  try {
    for (let left = MAX_DRAINED_BYTES; left > 0;) {
      const { done, value } = await reader.read();
      if (done) return;
      left -= value.byteLength;
    }
    await reader.cancel();
  } catch {
    // The client has gone.
  } finally {
    clearTimeout(limit);
  }
}
