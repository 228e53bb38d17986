/**
 * Byte ranges of large results. A result that is too large for one promise is stored in chunks: children of the job's
 * promise, which are not read by lists, by looks at the job or by replay. The job's result is then a table of contents
 * ({@link Parts}), which locates any range of the whole; `author/chunks.ts` writes both. Only answers of wrapped servers
 * are stored in this way, as the result of a durable function has a size limit; `answers.ts` calls this module for no others.
 */
import type { DurablePromise } from "../jobs/durable-promise.ts";
import type { RemoteStore } from "../jobs/remote-store.ts";
import { type JobView, viewOf } from "../jobs/status.ts";
import { decodeValue, PARTS_KEY, type Parts, partsIn } from "../resonate/codec.ts";
import { chunkId } from "../resonate/ids.ts";
import { parseExact } from "../resonate/json.ts";
import { boundary, FIRST_PART, limitIn, MAX_MEDIA, pick, type Selection } from "./results.ts";

/** How many characters of JSON text each chunk but the last has. A character takes up to three bytes. */
export const CHUNK_CHARACTERS = 100_000;

/**
 * The view of a job. If its result is stored in chunks, the view has the requested range in place of the beginning: as much of
 * it as an answer of `maxCharacters` characters can hold.
 *
 * @throws {Error} when a chunk is gone, because the job is being removed
 */
export async function viewOfRange(
  store: RemoteStore,
  promise: DurablePromise,
  selection: Selection,
  maxCharacters: number,
  signal?: AbortSignal,
): Promise<JobView> {
  const { result: mode, fields = [], offset = 0 } = selection;
  const isDefault = mode !== "full" && fields.length === 0 && offset === 0 && selection.limit === undefined;
  const limit = limitIn(selection, maxCharacters);
  const view = viewOf(promise.name, promise);
  const parts = partsIn(view.result);
  if (!parts || mode === "none" || isDefault) return view;
  const fieldsOfShape = fields.length > 0 ? pick(parts.shape, fields) : undefined;
  // One more code unit at either end shows whether the range would cut a character in two.
  const from = Math.max(0, offset - 1);
  const range = { fieldsOfShape, from, to: offset + limit + 1, signal };
  const { text, characters } = await textOfRange(store, promise.id, parts, range);
  const begin = boundary(text, Math.min(offset - from, text.length));
  const length = mode === "full" || selection.limit !== undefined ? limit : FIRST_PART;
  const rangeParts = {
    ...parts,
    characters,
    text: text.slice(begin, boundary(text, begin + length)),
    offset: from + begin,
  };
  return { ...view, result: { [PARTS_KEY]: rangeParts } };
}

/** The longest result that is read as a whole, in characters: an isolate has 128 MB for all its requests. */
export const MAX_WHOLE_CHARACTERS = 4_500_000;

/** The promise, with its whole result if that is stored in chunks because of its images, sounds and files. */
export async function withMedia(
  store: RemoteStore,
  promise: DurablePromise,
  signal?: AbortSignal,
): Promise<DurablePromise> {
  const parts = partsIn(promise.value);
  if (!parts?.media || parts.media > MAX_MEDIA || parts.characters > MAX_WHOLE_CHARACTERS) return promise;
  return { ...promise, value: await completeResult(store, promise.id, parts, signal) };
}

/** A job's whole result. @throws {Error} when a chunk is gone */
export async function completeResult(
  store: RemoteStore,
  job: string,
  parts: Parts,
  signal?: AbortSignal,
): Promise<unknown> {
  return parseExact((await textOfRange(store, job, parts, { from: 0, to: parts.characters, signal })).text);
}

/** The range from `from` to `to` of the result, or of the part `fieldsOfShape` from its shape; and the length of the whole of it. */
async function textOfRange(
  store: RemoteStore,
  job: string,
  { id, characters }: Parts,
  {
    fieldsOfShape,
    from,
    to,
    signal,
  }: { fieldsOfShape?: unknown; from: number; to: number; signal?: AbortSignal | undefined },
): Promise<Pick<Parts, "text" | "characters">> {
  // Texts of the shape, alternating with the begin and length of the stored value between two of them.
  const pieces =
    fieldsOfShape === undefined ? ["", 0, characters] : JSON.stringify(fieldsOfShape).split(/(?<=:)"(\d+)\+(\d+)"/);
  let text = "";
  let all = 0;
  for (let i = 0; i < pieces.length; i += 3) {
    const words = String(pieces[i]);
    text += words.slice(Math.max(0, from - all), Math.max(0, to - all));
    all += words.length;
    const [begin, length] = [Number(pieces[i + 1] ?? 0), Number(pieces[i + 2] ?? 0)];
    const end = begin + Math.min(length, to - all);
    for (let at = begin + Math.max(0, from - all); at < end;) {
      const n = Math.floor(at / CHUNK_CHARACTERS);
      const part = await store.child(chunkId(job, id, n), signal);
      if (!part) throw new Error("a part of the result is gone");
      text += String(decodeValue(part.param)).slice(at - n * CHUNK_CHARACTERS, end - n * CHUNK_CHARACTERS);
      at = (n + 1) * CHUNK_CHARACTERS;
    }
    all += length;
  }
  return { text, characters: all };
}
