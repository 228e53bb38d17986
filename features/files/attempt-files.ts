/** The files that one attempt of a step stores and reads. */
import { getMimeType } from "hono/utils/mime";
import {
  type FileData,
  type FileLimits,
  type FileReference,
  fileUri,
  type InputFile,
  isOfType,
  MAX_FILE,
  MAX_FILE_NAME,
  MINUTE,
  NonRetryableError,
  partsOfUri,
  type Step,
} from "../../core/author/index.ts";
import type { JobOfStep, Lease } from "../../core/engine/index.ts";
import { base64ToBytes, sha256Of, splitKey } from "../../core/resonate/index.ts";
import { type FileStorage, folderOf, streamOf } from "./kept-files.ts";
import { chunksOf } from "./storage/objects.ts";

const KEEPS_NO_FILES =
  "this deployment keeps no files: set FILES_URL to a folder or to a bucket that speaks S3, or bind a bucket as FILES";

/** Fetches only from public addresses, and follows no redirect. */
export type FetchPublic = (url: string, init: { signal: AbortSignal }) => Promise<Response>;

/** How many bytes of files a job has, counting those that it is storing, and how many it may have: see `MAX_STORED_BYTES`. */
export interface FileAllowance {
  usedBytes: number;
  readonly maxBytes: number;
}

/** How many bytes a file counts as in addition to its content. */
const FILE_OVERHEAD_BYTES = 1_000;

/** Where the files of a worker's jobs are, and where those of its clients come from. */
export interface FileSources {
  /** Undefined in a deployment that keeps no files. */
  storage: FileStorage | undefined;
  /** Fetches files that clients give by their address; undefined where nothing can guard against private addresses. */
  fetchPublic?: FetchPublic | undefined;
}

/** The attempt whose files they are. */
export interface AttemptOfFiles {
  path: string;
  lease: Pick<Lease, "id" | "run" | "version">;
  job: Pick<JobOfStep, "jobName" | "promiseOf">;
  step: Pick<Step, "attempt" | "signal">;
}

/** A file that is stored or being stored. */
interface StoredFile {
  key: string;
  /** What it takes of the job's room, so far. */
  bytes: number;
  /** The size of its content, once that is stored. */
  size: number;
}

/** Implements `step.file` and `step.read` for one attempt. */
export class AttemptFiles implements Pick<Step, "file" | "read"> {
  readonly #sources: FileSources;
  readonly #attempt: AttemptOfFiles;
  readonly #allowance: FileAllowance | undefined;
  readonly #jobName: string;
  /** By their ids. */
  readonly #stored = new Map<string, StoredFile>();
  #count = 0;
  #isOver = false;
  #place: Promise<{ folder: string; stem: string }> | undefined;

  /** `allowance`: undefined if the job may store any number of bytes. */
  constructor(sources: FileSources, attempt: AttemptOfFiles, allowance?: FileAllowance) {
    this.#sources = sources;
    this.#attempt = attempt;
    this.#allowance = allowance;
    this.#jobName = splitKey(attempt.job.jobName).name;
  }

  async file(name: string, data: FileData, { mimeType }: { mimeType?: string } = {}): Promise<FileReference> {
    const { lease, step, path } = this.#attempt;
    const storage = this.#storage;
    step.signal.throwIfAborted();
    checkName(name);
    this.#count += 1;
    const n = this.#count;
    const { folder, stem } = await this.#placeIn(storage);
    const id = `${stem}-${lease.version}.${step.attempt}.${n}`;
    const file: StoredFile = { key: `${folder}/${id}`, bytes: 0, size: 0 };
    this.#stored.set(id, file);
    const type = mimeType ?? typeOf(data) ?? typeOfName(name) ?? "application/octet-stream";
    try {
      const content = this.#countBytes(name, file, bytesIn(data, storage));
      const { size, sha256 } = await storage.write(file.key, content, { job: lease.id, name, mimeType: type });
      this.#charge(name, file, 0);
      file.size = size;
      const uri = fileUri(this.#jobName, id, name);
      return { uri, name, mimeType: type, size, sha256, step: path, attempt: step.attempt };
    } catch (error) {
      // The step may have ended in the meantime, and have forgotten this file before the last bytes were written.
      this.#stored.set(id, file);
      await this.#remove(id);
      throw error;
    }
  }

  async read(
    file: FileReference | InputFile | string,
    ownLimits: FileLimits = {},
  ): Promise<ReadableStream<Uint8Array>> {
    const reference = isInputFile(file) ? { ...file, uri: file.from } : file;
    const limits = isInputFile(file) ? { ...file, ...ownLimits } : ownLimits;
    const uri = typeof reference === "string" ? reference : reference?.uri;
    if (/^data:/i.test(uri)) return fromDataUri(uri, limits).stream();
    const { step } = this.#attempt;
    if (isInputFile(file) && /^https:/i.test(uri)) return download(uri, limits, step.signal, this.#sources.fetchPublic);
    const storage = this.#storage;
    const key = await this.#keyOf(uri);
    const description = key && (await storage.describe(key));
    if (!key || !description) throw new NonRetryableError(goneMessage(uri));
    if (typeof reference !== "string" && "sha256" in reference && reference.sha256 !== description.sha256)
      throw new NonRetryableError(`${uri} is not the file of the reference: its checksum differs`);
    checkLimits(uri, description.mimeType, description.size, limits);
    const stream = await storage.read(key, description);
    if (!stream) throw new NonRetryableError(goneMessage(uri));
    return stream;
  }

  /** The attempt has succeeded with this value: files that it does not name are removed. Resolves with the size of the others. */
  async keepReferenced(value: unknown): Promise<number> {
    const text = this.#stored.size > 0 ? (JSON.stringify(value) ?? "") : "";
    await this.#end([...this.#stored.keys()].filter((id) => !text.includes(id)));
    return this.#stored.values().reduce((sum, { size }) => sum + size, 0);
  }

  /** The attempt has failed. */
  discard(): Promise<void> {
    return this.#end([...this.#stored.keys()]);
  }

  get #storage(): FileStorage {
    const { storage } = this.#sources;
    if (storage) return storage;
    throw new NonRetryableError(KEEPS_NO_FILES);
  }

  /** The folder of the job's files, and the beginning of their names for this step; files of earlier attempts are removed. */
  #placeIn(storage: FileStorage): Promise<{ folder: string; stem: string }> {
    this.#place ??= this.#clear(storage).catch((error) => {
      // The step may store the file again, after the store's outage.
      this.#place = undefined;
      throw error;
    });
    return this.#place;
  }

  /** Removes the files of earlier attempts at this step: they did not succeed, so no journal entry refers to those files. */
  async #clear({ location }: FileStorage): Promise<{ folder: string; stem: string }> {
    const { lease, step, path } = this.#attempt;
    const folder = await folderOf(lease.id);
    const stem = (await sha256Of(`${lease.run}\n${path}`)).slice(0, 16);
    const from = `${folder}/${stem}-`;
    for await (const { key } of location.objects.list(from)) {
      const [version = 0, attempt = 0] = key.slice(from.length).split(".").map(Number);
      // A later attempt may run elsewhere: its files stay.
      const isEarlier = version < lease.version || (version === lease.version && attempt < step.attempt);
      if (isEarlier) await location.objects.remove(key);
    }
    return { folder, stem };
  }

  /** The bytes of a file, each of which finds room in the job. @throws {NonRetryableError} */
  async *#countBytes(name: string, file: StoredFile, content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    this.#charge(name, file, FILE_OVERHEAD_BYTES);
    for await (const bytes of upTo(content, MAX_FILE)) {
      this.#charge(name, file, bytes.length);
      yield bytes;
    }
  }

  /** @throws {NonRetryableError} if there is no room for so many bytes more */
  #charge(name: string, file: StoredFile, bytes: number): void {
    this.#attempt.step.signal.throwIfAborted();
    if (this.#isOver) throw new NonRetryableError(`step.file: the step ended before ${name} was stored: await it`);
    const allowance = this.#allowance;
    if (!allowance) return;
    if (allowance.usedBytes + bytes > allowance.maxBytes) throw new NonRetryableError(fullMessage(allowance.maxBytes));
    file.bytes += bytes;
    allowance.usedBytes += bytes;
  }

  /** The key of a file of this job, or of another job of the same caller. */
  async #keyOf(uri: string): Promise<string | undefined> {
    const parts = partsOfUri(uri);
    if (!parts)
      throw new NonRetryableError(
        "step.read takes a reference to a file, its URI or a data: URI, and fetches no other address",
      );
    const { lease, job } = this.#attempt;
    const id = parts.job === this.#jobName ? lease.id : job.promiseOf(parts.job);
    return id && `${await folderOf(id)}/${parts.id}`;
  }

  async #remove(id: string): Promise<void> {
    const file = this.#stored.get(id);
    if (!file) return;
    this.#stored.delete(id);
    if (this.#allowance) this.#allowance.usedBytes -= file.bytes;
    file.bytes = 0;
    await this.#sources.storage?.remove(file.key).catch(() => {});
  }

  async #end(ids: readonly string[]): Promise<void> {
    this.#isOver = true;
    await Promise.all(ids.map((id) => this.#remove(id)));
  }
}

/** @throws {NonRetryableError} */
function checkName(name: unknown): void {
  const isName =
    typeof name === "string" && name !== "" && name.length <= MAX_FILE_NAME && !/[\p{Cc}\p{Cs}/\\]/u.test(name);
  if (isName) return;
  throw new NonRetryableError(
    `step.file: a file's name has 1 to ${MAX_FILE_NAME} characters, without slashes, control characters and unpaired surrogates`,
  );
}

const fullMessage = (most: number) =>
  `the job's files come to more than the ${most} bytes that may be stored of its caller's jobs (MAX_STORED_BYTES): store less`;

const isInputFile = (file: unknown): file is InputFile => typeof (file as InputFile | null)?.from === "string";

const MAX_REDIRECTS = 5;

/** How many minutes a server may take to send a file, without the time that its reader takes. */
const MAX_DOWNLOAD_MINUTES = 30;

/** The bytes at an address that a client has given. @throws {NonRetryableError} where trying again cannot help */
async function download(
  url: string,
  limits: FileLimits,
  signal: AbortSignal,
  fetchPublic: FetchPublic | undefined,
): Promise<ReadableStream<Uint8Array>> {
  if (!fetchPublic)
    throw new NonRetryableError(
      "no file is fetched where a job runs in Workers, or in a test: give a data: URI or a job's file",
    );
  const { host } = new URL(url);
  let at = url;
  for (let n = 0; n <= MAX_REDIRECTS; n++) {
    const response = await fetchPublic(at, { signal }).catch((error: Error) => {
      const refused = [error, error.cause as Error | undefined].find((each) => each?.name === "PrivateAddress");
      throw refused ? new NonRetryableError(refused.message, { cause: error }) : error;
    });
    const { status, headers, body } = response;
    const location = status >= 300 && status < 400 ? headers.get("location") : null;
    try {
      if (location !== null) {
        const next = URL.canParse(location, at) ? new URL(location, at) : undefined;
        if (next?.protocol !== "https:") throw new NonRetryableError(`${host} leads to an address that is not https`);
        at = next.href;
        await body?.cancel();
        continue;
      }
      if (!response.ok || !body) {
        const words = `${host} answered ${status} for the file`;
        throw status >= 500 || status === 429 || status === 408 ? new Error(words) : new NonRetryableError(words);
      }
      const declaredType = headers.get("content-type")?.split(";")[0]?.trim();
      const knownType =
        declaredType && declaredType !== "application/octet-stream" ? declaredType : typeOfName(new URL(at).pathname);
      checkLimits(
        url,
        knownType ?? declaredType ?? "application/octet-stream",
        Number(headers.get("content-length")),
        limits,
      );
      return streamOf(upTo(inTime(chunksOf(body), host), limits.max ?? MAX_FILE));
    } catch (error) {
      await body?.cancel().catch(() => {});
      throw error;
    }
  }
  throw new NonRetryableError(`${host} leads from one address to the next, more than ${MAX_REDIRECTS} times`);
}

/** Ends a file that comes so slowly that it would hold its job until the deadline. */
async function* inTime(data: AsyncIterable<Uint8Array>, host: string): AsyncGenerator<Uint8Array> {
  let took = 0;
  let since = Date.now();
  for await (const bytes of data) {
    took += Date.now() - since;
    if (took > MAX_DOWNLOAD_MINUTES * MINUTE)
      throw new Error(`${host} took more than ${MAX_DOWNLOAD_MINUTES} minutes to send the file`);
    yield bytes;
    since = Date.now();
  }
}

const goneMessage = (uri: string) => `${uri}: the caller has no such file, or it is gone`;

/** @throws {NonRetryableError} */
function checkLimits(what: string, type: string, size: number, { mimeTypes, max = MAX_FILE }: FileLimits): void {
  const shown = what.slice(0, 200);
  if (!isOfType(type, mimeTypes))
    throw new NonRetryableError(`${shown} is ${type}, and must be ${mimeTypes?.join(", ")}`);
  if (size > max) throw new NonRetryableError(`${shown} has ${size} bytes; up to ${max} are taken`);
}

/** @throws {NonRetryableError} */
function fromDataUri(uri: string, limits: FileLimits): Blob {
  const [, type = "", isBase64, text = ""] = /^data:([^,]*?)(;base64)?,(.*)$/is.exec(uri) ?? [];
  try {
    const bytes = isBase64 ? base64ToBytes(text) : new TextEncoder().encode(decodeURIComponent(text));
    checkLimits("the data: URI", type || "text/plain", bytes.length, limits);
    return new Blob([bytes]);
  } catch (error) {
    if (error instanceof NonRetryableError) throw error;
    throw new NonRetryableError("the data: URI is malformed");
  }
}

/** Types that Hono does not know, as it knows only those that browsers load. */
const MORE_TYPES = {
  flac: "audio/flac",
  m4a: "audio/mp4",
  md: "text/markdown",
  ogg: "audio/ogg",
  tsv: "text/tab-separated-values",
  wav: "audio/wav",
  yaml: "application/yaml",
};

const typeOfName = (name: string): string | undefined =>
  (getMimeType(name) ?? getMimeType(name, MORE_TYPES))?.split(";")[0];

function typeOf(data: FileData): string | undefined {
  if (typeof data === "string") return undefined;
  if (data instanceof Blob) return data.type || undefined;
  return isResponse(data) ? (data.headers.get("content-type") ?? undefined) : undefined;
}

/** Checks the tag: a library may replace the global class, as Hono's Node server does, and then `instanceof` fails. */
const isResponse = (data: FileData): data is Response => Object.prototype.toString.call(data) === "[object Response]";

async function* bytesIn(data: FileData, { location }: FileStorage): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  if (typeof data === "string") yield encoder.encode(data);
  else if (data instanceof Uint8Array) yield data;
  else if (data instanceof ArrayBuffer) yield new Uint8Array(data);
  else if (data instanceof Blob) yield* chunksOf(data.stream());
  else if (data instanceof ReadableStream) yield* chunksOf(data);
  else if (isResponse(data)) {
    if (!data.ok) throw new Error(`step.file: the response has status ${data.status}`);
    if (data.body) yield* chunksOf(data.body);
  } else if (Symbol.asyncIterator in Object(data)) {
    for await (const each of data as AsyncIterable<Uint8Array | string>)
      yield typeof each === "string" ? encoder.encode(each) : each;
  } else if (typeof (data as { path?: unknown } | null)?.path === "string") {
    if (!location.readPath) throw new NonRetryableError("step.file: this worker has no disk to read a path from");
    yield* location.readPath((data as { path: string }).path);
  } else throw new NonRetryableError("step.file takes a text, bytes, a Blob, a stream, a Response or { path }");
}

async function* upTo(data: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const bytes of data) {
    size += bytes.length;
    if (size > maxBytes) throw new NonRetryableError(`the file has more than ${maxBytes} bytes`);
    yield bytes;
  }
}
