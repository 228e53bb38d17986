/**
 * The files of jobs in an object store. A file is two objects: its bytes and its description. The description is written last,
 * so a file without one does not exist. In a deployment with encryption keys each file has a key of its own. The description
 * holds it, sealed as promises are and bound to the key under which the file is stored.
 */
import { type FileReference, NonRetryableError } from "../../core/author/index.ts";
import {
  base64ToBytes,
  bytesToBase64,
  fromBase64,
  hex,
  type PromiseRecord,
  Sealing,
  sha256Of,
  splitGeneration,
  toBase64,
} from "../../core/resonate/index.ts";
import { bytesOf, chunksOf, inPieces, type ObjectStore, PART_BYTES } from "./storage/objects.ts";

/** The SHA-256 of a stream. */
interface Hash {
  update(bytes: Uint8Array): void | Promise<void>;
  /** In hexadecimal digits. */
  digest(): string | Promise<string>;
}

export interface FileLocation {
  objects: ObjectStore;
  encryptionKeys?: string | undefined;
  hash?(): Hash;
  /** Reads a path; undefined where there is no disk. */
  readPath?(path: string): AsyncIterable<Uint8Array>;
}

/** The description of a file. */
export interface Description extends Pick<FileReference, "name" | "mimeType" | "size" | "sha256"> {
  /** The id of its job's promise. */
  job: string;
  /** The key that its bytes are encrypted with, in base64; undefined when they are not. */
  key?: string;
}

/** The size of the chunks that are encrypted one by one, and how much encryption adds to each, in bytes. */
const CHUNK_BYTES = 256 * 1024;
const TAG_BYTES = 16;

/** The end of the key of a description, after that of its file. */
export const DESCRIPTION_SUFFIX = ".json";

export class FileStorage {
  readonly location: FileLocation;
  readonly #sealing: Sealing;

  constructor(location: FileLocation) {
    this.location = location;
    this.#sealing = new Sealing(location.encryptionKeys);
  }

  /** Stores a file at `key`. `data` is read once, and never held as a whole. */
  async write(
    key: string,
    data: AsyncIterable<Uint8Array>,
    details: Pick<Description, "job" | "name" | "mimeType">,
  ): Promise<Description> {
    const { objects } = this.location;
    const hash = this.#hash();
    let size = 0;
    const countBytes = async function* () {
      for await (const bytes of data) {
        size += bytes.length;
        await hash.update(bytes);
        yield bytes;
      }
    };
    const secret = this.#sealing.encode ? crypto.getRandomValues(new Uint8Array(32)) : undefined;
    const bytes = secret ? encrypt(countBytes(), await importKey(secret)) : countBytes();
    await objects.write(key, inPieces(bytes, PART_BYTES));
    const description: Description = {
      ...details,
      size,
      sha256: await hash.digest(),
      ...(secret && { key: bytesToBase64(secret) }),
    };
    const value = { data: toBase64(JSON.stringify(description)) };
    const { param } = this.#sealing.encode ? await this.#sealing.seal({ id: key, param: value }) : { param: value };
    await objects.write(
      key + DESCRIPTION_SUFFIX,
      inPieces(chunksOf(new Blob([JSON.stringify(param)]).stream()), PART_BYTES),
    );
    return description;
  }

  /** @throws {Error} for a description that no key opens */
  async describe(key: string): Promise<Description | undefined> {
    const stored = await this.location.objects.read(key + DESCRIPTION_SUFFIX);
    if (!stored) return undefined;
    const value = JSON.parse(new TextDecoder().decode(await bytesOf(stored)));
    const { param } = await this.#sealing.decodeRecord({ id: key, param: value, value: {} } as PromiseRecord);
    return JSON.parse(fromBase64(param.data ?? ""));
  }

  /** The bytes of a file; undefined if there is none. The stream fails if they are not the bytes that were stored. */
  async read(key: string, details: Description): Promise<ReadableStream<Uint8Array> | undefined> {
    const bytes = await this.bytes(key, details, undefined, false);
    return bytes && streamOf(bytes);
  }

  /**
   * The same as chunks, or the range of bytes from `from` up to `to`. With `isReused` a chunk is valid only until the next one is
   * requested. A range can be checked for damage only if the file is encrypted.
   */
  async bytes(
    key: string,
    { size, sha256, key: secret }: Description,
    { from, to } = { from: 0, to: size },
    isReused = true,
  ): Promise<AsyncGenerator<Uint8Array> | undefined> {
    const { objects } = this.location;
    const isWhole = from === 0 && to === size;
    const first = Math.floor(from / CHUNK_BYTES);
    const all = size + TAG_BYTES * Math.max(1, Math.ceil(size / CHUNK_BYTES));
    const begin = secret ? first * (CHUNK_BYTES + TAG_BYTES) : from;
    const end = secret ? Math.min(all, Math.max(1, Math.ceil(to / CHUNK_BYTES)) * (CHUNK_BYTES + TAG_BYTES)) : to;
    const stored = await objects.read(key, isWhole ? undefined : { offset: begin, length: end - begin });
    if (!stored) return undefined;
    const bytes = secret
      ? within(
          decrypt(chunksOf(stored, true), await importKey(base64ToBytes(secret)), first, isReused),
          from - first * CHUNK_BYTES,
          to - from,
        )
      : chunksOf(stored, isReused);
    return this.#checkContent(bytes, to - from, isWhole ? sha256 : undefined);
  }

  async *#checkContent(bytes: AsyncIterable<Uint8Array>, length: number, sha256: string | undefined) {
    const hash = sha256 === undefined ? undefined : this.#hash();
    let size = 0;
    for await (const each of bytes) {
      size += each.length;
      await hash?.update(each);
      // The last bytes are held back until all bytes are checked.
      if (size < length) yield each;
      else if (size > length || (hash && (await hash.digest()) !== sha256))
        throw new NonRetryableError(DAMAGED_MESSAGE);
      else yield each;
    }
    if (size < length) throw new NonRetryableError(DAMAGED_MESSAGE);
  }

  /** Removes a file, its description first, so that a partly removed file does not exist. */
  async remove(key: string): Promise<void> {
    await this.location.objects.remove(key + DESCRIPTION_SUFFIX);
    await this.location.objects.remove(key);
  }

  /** Removes all files of all generations of a job's name. */
  async removeAll(promiseId: string): Promise<void> {
    for await (const { key } of this.location.objects.list(`${await folderOf(promiseId)}/`))
      await this.location.objects.remove(key);
  }

  #hash(): Hash {
    return this.location.hash?.() ?? platformHash();
  }
}

const DAMAGED_MESSAGE = "the file is not what was stored: its checksum or its length differs";

/** The folder of the files of all generations of a job's name. A hash, as the name may be too long or not valid for a folder. */
export async function folderOf(promiseId: string): Promise<string> {
  const { base } = splitGeneration(promiseId);
  return (await sha256Of(base)).slice(0, 40);
}

/** Whether a key belongs to a file, a description or an unfinished write of either. The store may hold foreign objects too. */
export const isFileKey = (key: string): boolean => /^[0-9a-f]{40}\/[0-9a-f]{16}-\d+\.\d+\.\d+/.test(key);

const importKey = (secret: Uint8Array<ArrayBuffer>) =>
  crypto.subtle.importKey("raw", secret, "AES-GCM", false, ["encrypt", "decrypt"]);

/** Each file has its own key, so a chunk's number is a unique nonce. The description's length reveals missing chunks. */
function algorithm(n: number) {
  const iv = new Uint8Array(12);
  new DataView(iv.buffer).setUint32(8, n);
  return { name: "AES-GCM", iv };
}

async function* encrypt(data: AsyncIterable<Uint8Array>, key: CryptoKey) {
  let n = 0;
  for await (const piece of inPieces(data, CHUNK_BYTES))
    yield* singleChunk(await crypto.subtle.encrypt(algorithm(n++), key, piece));
}

/** Yields bytes that are valid until the next are requested. Then frees their memory at once, without the garbage collector. */
function* singleChunk(bytes: ArrayBuffer): Generator<Uint8Array> {
  yield new Uint8Array(bytes);
  bytes.transfer(0);
}

async function* decrypt(data: AsyncIterable<Uint8Array>, key: CryptoKey, first: number, isReused: boolean) {
  let n = first;
  for await (const piece of inPieces(data, CHUNK_BYTES + TAG_BYTES)) {
    const opened = await crypto.subtle.decrypt(algorithm(n++), key, piece).catch(() => undefined);
    if (!opened) throw new NonRetryableError(DAMAGED_MESSAGE);
    if (isReused) yield* singleChunk(opened);
    else yield new Uint8Array(opened);
  }
}

async function* within(data: AsyncIterable<Uint8Array>, from: number, length: number) {
  let skip = from;
  let left = length;
  for await (const bytes of data) {
    const part = bytes.subarray(skip, skip + left);
    skip = Math.max(0, skip - bytes.length);
    left -= part.length;
    if (part.length > 0) yield part;
    if (left === 0) return;
  }
}

export function streamOf(bytes: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await bytes.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: () => bytes.return(undefined) as Promise<never>,
  });
}

interface DigestStream extends WritableStream<Uint8Array> {
  digest: Promise<ArrayBuffer>;
}

/** The hash that workerd offers. */
function platformHash(): Hash {
  const { DigestStream } = crypto as unknown as { DigestStream: new (algorithm: string) => DigestStream };
  const stream = new DigestStream("SHA-256");
  const writer = stream.getWriter();
  return {
    update: (bytes) => writer.write(bytes),
    async digest() {
      await writer.close();
      return hex(new Uint8Array(await stream.digest));
    },
  };
}
