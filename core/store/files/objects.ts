/** What keeps the bytes of files: a folder, a bucket of an account, or any store that speaks S3. */

/** How many bytes are written at once, the least that S3 and R2 take: up to 10,000 parts, which R2 wants equal. */
export const PART = 5 * 1024 * 1024;

export interface StoredObject {
  key: string;
  /** When it was written, in milliseconds since the epoch. */
  at: number;
}

/** Keys are hexadecimal digits, `-`, `.` and one `/`. */
export interface ObjectStore {
  /** Writes an object, which is there whole or not at all. `parts`: each of {@link PART} bytes but the last, until the next. */
  write(key: string, parts: AsyncIterable<Uint8Array<ArrayBuffer>>): Promise<void>;
  /** Its bytes from `offset` on; undefined where it does not exist. */
  read(key: string, range?: { offset: number; length: number }): Promise<ReadableStream<Uint8Array> | undefined>;
  /** The objects whose keys begin so, with what is left of unfinished writes. */
  list(prefix: string): AsyncIterable<StoredObject>;
  /** Removes an object, or what `list` gave for an unfinished write. */
  remove(key: string): Promise<void>;
}

/**
 * Cuts a stream into pieces of exactly so many bytes; only the last may have fewer, and there is at least one. Each is in the
 * buffer of the one before: it holds until the next is asked for.
 */
export async function* inPieces(
  data: AsyncIterable<Uint8Array>,
  size: number,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
  let piece = new Uint8Array(0);
  let filled = 0;
  let isFirst = true;
  for await (const bytes of data) {
    for (let at = 0; at < bytes.length; ) {
      if (filled === piece.length && filled < size) {
        // Small files take small buffers.
        const grown = new Uint8Array(Math.min(size, Math.max(2 * piece.length, bytes.length - at, 65_536)));
        grown.set(piece.subarray(0, filled));
        piece.buffer.transfer(0);
        piece = grown;
      }
      const taken = Math.min(bytes.length - at, piece.length - filled);
      piece.set(bytes.subarray(at, at + taken), filled);
      filled += taken;
      at += taken;
      if (filled < size) continue;
      yield piece;
      isFirst = false;
      filled = 0;
    }
  }
  if (filled > 0 || isFirst) yield piece.subarray(0, filled);
}

/** How much is read from a stream of bytes at once; of itself workerd gives 4 KiB. */
const BLOCK = 256 * 1024;

type Read = { done: boolean; value?: Uint8Array | undefined };

/** workerd's. */
interface BlockReader {
  readAtLeast?(least: number, into: Uint8Array): Promise<Read>;
}

/** Reads a stream, into a buffer where that is of use and the stream can. */
function readerOf(stream: ReadableStream<Uint8Array>, isReused: boolean) {
  const plain = () => {
    const reader = stream.getReader();
    return { reader, isInto: false, read: (): Promise<Read> => reader.read() };
  };
  let reader: ReadableStreamBYOBReader & BlockReader;
  try {
    reader = stream.getReader({ mode: "byob" });
  } catch {
    // Its chunks are made by a program.
    return plain();
  }
  if (!reader.readAtLeast && !isReused) {
    reader.releaseLock();
    return plain();
  }
  const read = (buffer: ArrayBufferLike = new ArrayBuffer(BLOCK)): Promise<Read> => {
    const into = new Uint8Array(buffer as ArrayBuffer);
    return reader.readAtLeast?.(BLOCK, into) ?? reader.read(into);
  };
  return { reader, isInto: true, read };
}

/**
 * The chunks of a stream; one that is left is cancelled. `isReused`: a chunk may hold until the next is asked for, which makes no
 * garbage.
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
