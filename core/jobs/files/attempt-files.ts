/** The files that one attempt of a step stores and reads. */
import { getMimeType } from "hono/utils/mime";
import { NonRetryableError } from "../../definitions/context.ts";
import {
  type FileData,
  type FileLimits,
  fileUri,
  isOfType,
  MAX_FILE,
  MAX_FILE_NAME,
  MAX_INPUT,
  partsOfUri,
} from "../../definitions/file.ts";
import type { AttemptFiles, OfAttempt } from "../../engine/runtime.ts";
import { base64ToBytes } from "../../store/base64.ts";
import { chunksOf } from "../../store/files/objects.ts";
import { splitKey } from "../../store/ids.ts";
import { folderOf, hex, type KeptFiles, streamOf } from "./kept-files.ts";

export const NO_PLACE =
  "this deployment has no place for files: set FILES_URL to a folder or to a bucket that speaks S3, or bind a bucket as FILES";

/** Makes what `step.file` and `step.read` do. `kept`: undefined where no place for files is set. */
export function attemptFiles(kept: KeptFiles | undefined, of: OfAttempt): AttemptFiles {
  const { promiseId, jobName, run, step, version, attempt, signal } = of;
  const { name: job } = splitKey(jobName);
  const stored = new Map<string, string>();
  let begun: Promise<{ folder: string; stem: string }> | undefined;

  /** Removes what attempts before this one have left: none of it is in the step's record. */
  const begin = async (place: KeptFiles) => {
    const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(`${run}\n${step}`));
    const folder = await folderOf(promiseId);
    const stem = hex(new Uint8Array(digest)).slice(0, 16);
    const from = `${folder}/${stem}-`;
    for await (const { key } of place.place.objects.list(from)) {
      const [theirs = 0, number = 0] = key.slice(from.length).split(".").map(Number);
      // A later attempt elsewhere is not this one's to clean up after.
      if (theirs < version || (theirs === version && number < attempt)) await place.place.objects.remove(key);
    }
    return { folder, stem };
  };
  const there = (): KeptFiles => {
    if (kept) return kept;
    throw new NonRetryableError(NO_PLACE);
  };
  const remove = (keys: Iterable<string>) => Promise.all([...keys].map((key) => kept?.remove(key).catch(() => {})));
  let count = 0;

  return {
    async file(name, data, { mimeType } = {}) {
      const place = there();
      signal.throwIfAborted();
      if (typeof name !== "string" || name === "" || name.length > MAX_FILE_NAME || /[\p{Cc}/\\]/u.test(name))
        throw new NonRetryableError(
          `step.file: a file's name has 1 to ${MAX_FILE_NAME} characters, without slashes and control characters`,
        );
      count += 1;
      const n = count;
      begun ??= begin(place);
      const { folder, stem } = await begun;
      const id = `${stem}-${version}.${attempt}.${n}`;
      const key = `${folder}/${id}`;
      stored.set(id, key);
      const type = mimeType ?? typeOf(data) ?? getMimeType(name)?.split(";")[0] ?? "application/octet-stream";
      const bytes = bounded(bytesIn(data, place), MAX_FILE, signal);
      const { size, sha256 } = await place.write(key, bytes, { job: promiseId, name, mimeType: type });
      signal.throwIfAborted();
      return { uri: fileUri(job, id, name), name, mimeType: type, size, sha256, step, attempt };
    },

    async read(given, limits = {}) {
      const uri = typeof given === "string" ? given : given?.uri;
      if (/^data:/i.test(uri))
        return streamOf(chunksOf(fromDataUri(uri, limits).stream()) as AsyncGenerator<Uint8Array>);
      const place = there();
      const parts = partsOfUri(uri);
      if (!parts)
        throw new NonRetryableError(
          "step.read takes a reference to a file, its URI or a data: URI, and fetches no other address",
        );
      const id = parts.job === job ? promiseId : of.promiseOf(parts.job);
      const key = id && `${await folderOf(id)}/${parts.id}`;
      const description = key && (await place.describe(key));
      if (!key || !description) throw new NonRetryableError(gone(uri));
      if (typeof given !== "string" && given.sha256 !== description.sha256)
        throw new NonRetryableError(`${uri} is not the file that the reference is to: its checksum differs`);
      fits(uri, description.mimeType, description.size, limits);
      const stream = await place.read(key, description);
      if (!stream) throw new NonRetryableError(gone(uri));
      return stream;
    },

    async keep(value) {
      if (stored.size === 0) return;
      const text = JSON.stringify(value) ?? "";
      await remove([...stored].filter(([id]) => !text.includes(id)).map(([, key]) => key));
    },
    async discard() {
      await remove(stored.values());
    },
  };
}

const gone = (uri: string) => `${uri}: there is no such file of this caller's, or it is gone`;

/** @throws {NonRetryableError} */
function fits(what: string, type: string, size: number, { mimeTypes, max = MAX_INPUT }: FileLimits): void {
  const shown = what.slice(0, 200);
  if (!isOfType(type, mimeTypes))
    throw new NonRetryableError(`${shown} is ${type}, and must be ${mimeTypes?.join(", ")}`);
  if (size > max) throw new NonRetryableError(`${shown} has ${size} bytes; up to ${max} are taken`);
}

/** @throws {NonRetryableError} */
export function fromDataUri(uri: string, limits: FileLimits): Blob {
  const [, type = "", isBase64, text = ""] = /^data:([^,]*?)(;base64)?,(.*)$/is.exec(uri) ?? [];
  try {
    const bytes = isBase64 ? base64ToBytes(text) : new TextEncoder().encode(decodeURIComponent(text));
    fits("the data: URI", type || "text/plain", bytes.length, limits);
    return new Blob([bytes]);
  } catch (error) {
    if (error instanceof NonRetryableError) throw error;
    throw new NonRetryableError("the data: URI is malformed");
  }
}

function typeOf(data: FileData): string | undefined {
  if (typeof data === "string") return undefined;
  if (data instanceof Blob) return data.type || undefined;
  return data instanceof Response ? (data.headers.get("content-type") ?? undefined) : undefined;
}

async function* bytesIn(data: FileData, { place }: KeptFiles): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  if (typeof data === "string") yield encoder.encode(data);
  else if (data instanceof Uint8Array) yield data;
  else if (data instanceof ArrayBuffer) yield new Uint8Array(data);
  else if (data instanceof Blob) yield* chunksOf(data.stream());
  else if (data instanceof ReadableStream) yield* chunksOf(data);
  else if (data instanceof Response) {
    if (!data.ok) throw new Error(`step.file: the response is ${data.status}, and no file`);
    if (data.body) yield* chunksOf(data.body);
  } else if (Symbol.asyncIterator in Object(data)) {
    for await (const each of data as AsyncIterable<Uint8Array | string>)
      yield typeof each === "string" ? encoder.encode(each) : each;
  } else if (typeof (data as { path?: unknown } | null)?.path === "string") {
    if (!place.readPath) throw new NonRetryableError("step.file: this worker has no disk to read a path from");
    yield* place.readPath((data as { path: string }).path);
  } else throw new NonRetryableError("step.file takes a text, bytes, a Blob, a stream, a Response or { path }");
}

async function* bounded(
  data: AsyncIterable<Uint8Array>,
  most: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const bytes of data) {
    signal.throwIfAborted();
    size += bytes.length;
    if (size > most) throw new NonRetryableError(`the file has more than ${most} bytes`);
    yield bytes;
  }
}
