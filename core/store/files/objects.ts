/** What keeps the bytes of files: a folder, a bucket of an account, or any store that speaks S3. */

/** How many bytes are written at once: S3 takes parts of 5 MiB or more, up to 10,000, and R2 wants them equal. */
export const PART = 8 * 1024 * 1024;

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

/** How much is read from a stream of workerd at once, which gives 4 KiB of itself; in bytes. */
const BLOCK = 256 * 1024;

interface BlockReader {
  readAtLeast(least: number, into: Uint8Array): Promise<{ done: boolean; value?: Uint8Array }>;
  cancel(): Promise<void>;
  releaseLock(): void;
}

/** What reads blocks of a stream; undefined where the platform reads none, or this stream's chunks are made by a program. */
function blocksOf(stream: ReadableStream<Uint8Array>): BlockReader | undefined {
  try {
    const reader = stream.getReader({ mode: "byob" }) as ReadableStreamBYOBReader & Partial<BlockReader>;
    if (reader.readAtLeast) return reader as unknown as BlockReader;
    reader.releaseLock();
  } catch {
    // It is no stream of bytes.
  }
  return undefined;
}

/**
 * The chunks of a stream; one that is left is cancelled. `isReused`: a chunk may hold until the next is asked for, which makes no
 * garbage.
 */
export async function* chunksOf(
  stream: ReadableStream<Uint8Array>,
  isReused = false,
): AsyncGenerator<Uint8Array, void, undefined> {
  const blocks = blocksOf(stream);
  const reader = blocks ?? stream.getReader();
  let isDone = false;
  let buffer: ArrayBufferLike | undefined;
  try {
    for (;;) {
      const { done, value } = await (blocks
        ? blocks.readAtLeast(BLOCK, new Uint8Array(buffer ?? new ArrayBuffer(BLOCK)))
        : (reader as ReadableStreamDefaultReader<Uint8Array>).read());
      isDone = done;
      if (value && value.length > 0) yield value;
      buffer = isReused && value?.buffer.byteLength === BLOCK ? value.buffer : undefined;
      if (done) return;
    }
  } finally {
    if (!isDone) await reader.cancel().catch(() => {});
  }
}

export async function bytesOf(stream: ReadableStream<Uint8Array>): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await new Response(stream as BodyInit).arrayBuffer());
}
