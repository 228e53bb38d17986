/** Files of jobs, and the references that stand for them. */

/**
 * A reference to a file that a step has stored: plain JSON, for results, partial results, events and arguments. The file is
 * kept and removed with its job.
 *
 * @example
 * const table: FileReference = await ctx.step("table", (step) => step.file("report.csv", "a,b\n1,2\n"));
 */
export interface FileReference {
  /** Names the job and the file: clients read it by `resources/read`. */
  uri: string;
  name: string;
  mimeType: string;
  /** In bytes. */
  size: number;
  /** In hexadecimal digits. */
  sha256: string;
  /** The step that stored it, and in which of its attempts. */
  step: string;
  attempt: number;
}

/**
 * The content of a file: a text, bytes, a stream, a response, or a path on a worker with a disk.
 *
 * @example
 * const data: FileData = { path: "/tmp/recording.wav" };
 */
export type FileData =
  | string
  | Uint8Array
  | ArrayBuffer
  | Blob
  | Response
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array | string>
  | { path: string };

/**
 * Limits of a file. `mimeTypes`: the accepted types, such as `text/csv` or `image/*`; default: any. `max`: the size in
 * bytes; default: 1 GiB, and for a `fileInput` 100 MB.
 *
 * @example
 * const photo: FileLimits = { mimeTypes: ["image/*"], max: 10_000_000 };
 */
export interface FileLimits {
  mimeTypes?: readonly string[];
  max?: number;
}

/**
 * A file that a client has given for a `fileInput`, in the form of the job's arguments: its address and its limits.
 *
 * @example
 * const photo: InputFile = { from: "https://example.com/photo.png", mimeTypes: ["image/*"], max: 10_000_000 };
 */
export interface InputFile extends FileLimits {
  from: string;
}

/** The largest file, in bytes. */
export const MAX_FILE = 1024 ** 3;

/** The largest file that a client may give, in bytes, unless a `fileInput` says otherwise. */
export const MAX_INPUT = 100_000_000;

/** The longest name of a file, in characters. */
export const MAX_FILE_NAME = 200;

const FILE_URI_PATTERN = /^job:\/\/([^/?#"]+)\/files\/([0-9a-f]{16}-\d+\.\d+\.\d+)\/([^/?#"]+)$/;

/** What the URI of each file contains: a JSON text without it names no file. */
export const FILE_PATH = "/files/";

export const fileUri = (job: string, id: string, name: string): string =>
  `job://${encodeURIComponent(job)}${FILE_PATH}${id}/${encodeURIComponent(name)}`;

/** The parts of a file's URI; undefined for any other text. */
export function partsOfUri(uri: unknown): { job: string; id: string; name: string } | undefined {
  const [, job, id, name] = (typeof uri === "string" && FILE_URI_PATTERN.exec(uri)) || [];
  if (job === undefined || id === undefined || name === undefined) return undefined;
  try {
    return { job: decodeURIComponent(job), id, name: decodeURIComponent(name) };
  } catch {
    return undefined;
  }
}

/** The first `max` references to files in a value, each once. */
export function filesIn(value: unknown, max = Number.POSITIVE_INFINITY): FileReference[] {
  const files = new Map<string, FileReference>();
  let level: unknown[] = [value];
  while (level.length > 0 && files.size < max) {
    for (const part of level) if (isFile(part) && files.size < max) files.set(part.uri, part);
    level = level.flatMap((part) => (typeof part === "object" && part !== null ? Object.values(part) : []));
  }
  return [...files.values()];
}

/**
 * The key of a wrapped server's stored answer with the references to its files, which replace its largest images, sounds and
 * files. Only the worker writes it.
 */
export const FILES_KEY = "durable-mcp:files";

/** The part of a job's result whose references to files count: the rest of a wrapped server's answer is only content. */
export const referringPart = ({ job, value }: { job: { returnsToolResult: boolean }; value?: unknown }): unknown =>
  job.returnsToolResult ? Object(value)[FILES_KEY] : value;

/** Whether a value is a reference to a file. */
export function isFile(value: unknown): value is FileReference {
  const { uri, name, mimeType, size, sha256 } = Object(value);
  const isSized = Number.isSafeInteger(size) && size >= 0 && typeof sha256 === "string";
  return isSized && typeof name === "string" && typeof mimeType === "string" && partsOfUri(uri) !== undefined;
}

/** A number of bytes in words, such as `300 KB`. */
export function sizeInWords(bytes: number): string {
  const [divisor, unit] =
    bytes < 1e3 ? [1, "bytes"] : bytes < 1e6 ? [1e3, "KB"] : bytes < 1e9 ? [1e6, "MB"] : [1e9, "GB"];
  return `${Math.round((bytes / Number(divisor)) * 10) / 10} ${unit}`;
}

/** Whether a media type is one of `types`, which may hold `image/*` and the like; undefined: any. */
export function isOfType(mimeType: string, types: readonly string[] | undefined): boolean {
  const [bare = ""] = mimeType.toLowerCase().split(";");
  const is = (type: string) =>
    type.endsWith("/*") ? bare.trim().startsWith(type.slice(0, -1).toLowerCase()) : bare.trim() === type.toLowerCase();
  return types?.some(is) ?? true;
}

/** Whether files of a media type are texts. */
export function isText(mimeType: string): boolean {
  const [type = ""] = mimeType.toLowerCase().split(/[; ]/);
  return /^text\/|[/+](json|xml|yaml)$/.test(type);
}
