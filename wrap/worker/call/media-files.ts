/** Stores the largest images, sounds and files of a wrapped server's answer as files of the job. */
import { getExtension } from "hono/utils/mime";
import {
  FILES_KEY,
  type FileReference,
  isFinal,
  MAX_FILE_NAME,
  MINUTE,
  SECOND,
  type Step,
} from "../../../core/author/index.ts";
import { backoff, pause } from "../../../core/resonate/index.ts";
import { base64Of, MAX_MEDIA } from "../../../core/tools/index.ts";
import type { JsonObject } from "../host/open-request.ts";

/** How many of an answer's images, sounds and files become a file each. Those beyond share files. */
const MAX_OWN_FILES = 100;
/** The maximum length of a file that several share, in characters of JSON: `resources/read` accepts a little more. */
const MAX_SHARED_FILE_CHARACTERS = 900_000;
/** How long a failing storage of files is retried, in milliseconds. */
const FILE_TIMEOUT_MS = 2 * MINUTE;

/** A file could not be stored, with the reason. */
export class FileNotStored extends Error {
  override name = "FileNotStored";

  constructor(file: string, cause: Error) {
    super(`${file} could not be stored as a file: ${cause.message}`, { cause });
  }
}

/** A part of an answer's content that is an image, a sound or a file. */
interface Media {
  /** Its index in the content. */
  i: number;
  part: JsonObject;
  /** Base64. */
  data: string;
}

/** A file to store. */
interface MediaFile {
  /** The index in the content of the text that names the file. */
  i: number;
  name: string;
  mimeType: string | undefined;
  data: Buffer;
  /** Continues the text that names the file. */
  note: string;
}

/** The answer with its largest media stored as files, until the rest fits. @throws {FileNotStored} */
export async function withFiles(step: Step, answer: JsonObject): Promise<JsonObject> {
  const content: (JsonObject | undefined)[] = [...((answer.content as JsonObject[] | undefined) ?? [])];
  const media = mediaToStore(content);
  if (media.length === 0) return answer;
  const ownMedia = media.slice(0, MAX_OWN_FILES);
  const sharedMedia = media.slice(MAX_OWN_FILES);
  for (const { i } of sharedMedia) content[i] = undefined;
  const files: FileReference[] = [];
  // Those that hold most come first: lists of an answer's files are short.
  for (const mediaFile of [...sharedFiles(sharedMedia, content.length), ...ownMedia.map(ownFile)]) {
    const file = await storeFile(step, mediaFile);
    files.push(file);
    const text = `${file.name} (${file.mimeType}, ${file.size} bytes) is kept as ${file.uri}${mediaFile.note}`;
    content[mediaFile.i] = { type: "text", text };
  }
  return { ...answer, content: content.filter(Boolean), [FILES_KEY]: files };
}

/** The largest media of a content, without which the rest fits into an answer. */
function mediaToStore(content: readonly (JsonObject | undefined)[]): Media[] {
  const media = content
    .map((part = {}, i) => ({ i, part, data: base64Of(part) }))
    .filter(({ data }) => data !== "")
    .sort((a, b) => b.data.length - a.data.length);
  let remaining = media.reduce((sum, { data }) => sum + data.length, 0);
  return media.filter(({ data }) => {
    const isStored = remaining > MAX_MEDIA;
    if (isStored) remaining -= data.length;
    return isStored;
  });
}

function ownFile({ i, part, data }: Media): MediaFile {
  const { mimeType, uri } = { ...(part.resource as JsonObject | undefined), ...part } as {
    mimeType?: string;
    uri?: string;
  };
  return { i, name: nameOf(part.type, i, uri, mimeType), mimeType, data: Buffer.from(data, "base64"), note: "" };
}

/** Files of JSON that several parts share. `length`: the length of the content, after which their texts come. */
function sharedFiles(media: readonly Media[], length: number): MediaFile[] {
  const files: string[][] = [];
  let space = 0;
  for (const { i, part } of media) {
    const json = `"${i}":${JSON.stringify(part)}`;
    if (json.length > space) {
      files.push([]);
      space = MAX_SHARED_FILE_CHARACTERS;
    }
    space -= json.length;
    files.at(-1)?.push(json);
  }
  return files.map((parts, n) => ({
    i: length + n,
    name: `more-${n + 1}.json`,
    mimeType: "application/json",
    data: Buffer.from(`{${parts.join(",")}}`),
    note: ` and has ${parts.length} more images, sounds and files, by their index in the server's content, from 0`,
  }));
}

/** @throws {FileNotStored} if that fails for good, or for too long */
async function storeFile(step: Step, { name, mimeType, data }: MediaFile): Promise<FileReference> {
  const start = Date.now();
  for (let n = 1; ; n++) {
    try {
      return await step.file(name, data, mimeType === undefined ? {} : { mimeType });
    } catch (error) {
      step.signal.throwIfAborted();
      const { message } = error as Error;
      step.log.warn("file not stored", { attempt: n, reason: message });
      if (isFinal(error) || Date.now() - start > FILE_TIMEOUT_MS) throw new FileNotStored(name, error as Error);
    }
    await pause(backoff(n, { base: SECOND, max: 20 * SECOND }), step.signal);
  }
}

/** A file name: the last part of the resource's address, or else the content's kind, number and extension. */
function nameOf(type: unknown, i: number, uri: string | undefined, mimeType = ""): string {
  const lastPart = uri?.split(/[?#]/)[0]?.split("/").at(-1) ?? "";
  const name = lastPart
    .replace(/[\p{Cc}\\]/gu, "")
    .slice(-MAX_FILE_NAME)
    .toWellFormed();
  const extension = getExtension(mimeType);
  return name || `${type}-${i + 1}${extension === undefined ? "" : `.${extension}`}`;
}
