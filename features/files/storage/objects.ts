/** Object stores, which keep the bytes of files: a folder, a bucket of the account, or any store that speaks S3. */

/**
 * How many bytes each part of an upload has: the minimum of S3 and R2. An object has up to 10,000 parts, and R2 requires that they
 * have the same size.
 */
export const PART_BYTES = 5 * 1024 * 1024;

export interface StoredObject {
  key: string;
  /** When it was written, in milliseconds since the epoch. */
  at: number;
}

/** Keys are hexadecimal digits, `-`, `.` and one `/`. */
export interface ObjectStore {
  /**
   * Writes an object, which then exists completely or not at all. There is at least one part; all `parts` but the last have
   * {@link PART_BYTES} bytes, and each is valid until the next is requested. They are closed if the write fails.
   */
  write(key: string, parts: AsyncIterable<Uint8Array<ArrayBuffer>>): Promise<void>;
  /** The bytes of an object, or the range of them; undefined if the object does not exist. */
  read(key: string, range?: { offset: number; length: number }): Promise<ReadableStream<Uint8Array> | undefined>;
  /** The objects whose keys begin with `prefix`, including the remains of unfinished writes. */
  list(prefix: string): AsyncIterable<StoredObject>;
  /** Removes an object, or an unfinished write by the key that `list` gave it. */
  remove(key: string): Promise<void>;
}

/**
 * Cuts a stream into pieces of exactly `size` bytes. Only the last may have fewer, and there is at least one. All pieces share
 * one buffer: each is valid until the next is requested.
 */
export async function* inPieces(
  data: AsyncIterable<Uint8Array>,
  size: number,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
  let piece = new Uint8Array(0);
  let filled = 0;
  let isFirst = true;
  for await (const bytes of data) {
    for (let at = 0; at < bytes.length;) {
      if (filled === piece.length && filled < size) {
        // The buffer grows on demand, so that small files need little memory.
        const grown = new Uint8Array(Math.min(size, Math.max(2 * piece.length, bytes.length - at, 65_536)));
        grown.set(piece.subarray(0, filled));
        piece.buffer.transfer(0);
        piece = grown;
      }
      const copied = Math.min(bytes.length - at, piece.length - filled);
      piece.set(bytes.subarray(at, at + copied), filled);
      filled += copied;
      at += copied;
      if (filled < size) continue;
      yield piece;
      isFirst = false;
      filled = 0;
    }
  }
  if (filled > 0 || isFirst) yield piece.subarray(0, filled);
}

/** How many bytes are read from a byte stream at once. The default of workerd is 4 KiB. */
const BLOCK_BYTES = 256 * 1024;

type Read = { done: boolean; value?: Uint8Array | undefined };

/** An addition of workerd to readers of byte streams. */
interface BlockReader {
  readAtLeast?(least: number, into: Uint8Array): Promise<Read>;
}

/** Returns a reader of a stream. It reads into a buffer if the stream supports that and there is something to gain. */
function readerOf(stream: ReadableStream<Uint8Array>, isReused: boolean) {
  const plain = () => {
    const reader = stream.getReader();
    return { reader, isInto: false, read: (): Promise<Read> => reader.read() };
  };
  let reader: ReadableStreamBYOBReader & BlockReader;
  try {
    reader = stream.getReader({ mode: "byob" });
  } catch {
    // Not a byte stream: it cannot read into a buffer.
    return plain();
  }
  if (!reader.readAtLeast && !isReused) {
    reader.releaseLock();
    return plain();
  }
  const read = (buffer: ArrayBufferLike = new ArrayBuffer(BLOCK_BYTES)): Promise<Read> => {
    const into = new Uint8Array(buffer as ArrayBuffer);
    return reader.readAtLeast?.(BLOCK_BYTES, into) ?? reader.read(into);
  };
  return { reader, isInto: true, read };
}

/**
 * The chunks of a stream, which is cancelled if the caller stops early. `isReused`: a chunk is only valid until the next one is
 * requested, so that all of them share one buffer.
 */
export async function* chunksOf(
  stream: ReadableStream<Uint8Array>,
  isReused = false,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { reader, isInto, read } = readerOf(stream, isReused);
  let isDone = false;
  let buffer: ArrayBufferLike | undefined;
  try {
    for (;;) {
      const { done, value } = await read(buffer);
      isDone = done;
      if (value && value.length > 0) yield value;
      if (done) return;
      buffer = isReused && isInto ? value?.buffer : undefined;
    }
  } finally {
    if (!isDone) await reader.cancel().catch(() => {});
  }
}

export async function bytesOf(stream: ReadableStream<Uint8Array>): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await new Response(stream as BodyInit).arrayBuffer());
}
