/**
 * Byte ranges of large results. A result that is larger than one promise holds is kept in chunks: children of the job's
 * promise, which no list, no look at the job and no replay reads. The job's result then is a table of contents
 * ({@link Parts}), by which any range of the whole is found; `author/chunks.ts` writes both. Only answers of wrapped servers
 * are kept so: what a durable function returns is bounded.
 */
import type { DurablePromise } from "../jobs/durable-promise.ts";
import type { RemoteStore } from "../jobs/remote-store.ts";
import { type JobView, viewOf } from "../jobs/status.ts";
import { decodeValue } from "../store/codec.ts";
import { chunkId } from "../store/ids.ts";
import { PARTS, type Parts, partsIn } from "../store/parts.ts";
import { boundary, FIRST_PART, limitIn, MAX_MEDIA, pick, type Selection } from "./results.ts";

/** The characters of JSON text in each chunk but the last. Each takes three bytes at most. */
export const PART = 100_000;

/**
 * The view of a job. Of a result that is kept in chunks it holds the range that is asked for, in place of its beginning: as
 * much as an answer of at most `limit` characters may hold.
 *
 * @throws {Error} when a chunk is gone: the job is being removed
 */
export async function viewOfRange(
  store: RemoteStore,
  promise: DurablePromise,
  selection: Selection,
  room: number,
  signal?: AbortSignal,
): Promise<JobView> {
  const { result: wanted, fields = [], offset = 0 } = selection;
  const isWhole = wanted !== "full" && fields.length === 0 && offset === 0 && selection.limit === undefined;
  const limit = limitIn(selection, room);
  const view = viewOf(promise.name, promise);
  const parts = promise.job.answers ? partsIn(view.result) : undefined;
  if (!parts || wanted === "none" || isWhole) return view;
  const picked = fields.length > 0 ? pick(parts.shape, fields) : undefined;
  // One more at either end shows whether that is within a character.
  const from = Math.max(0, offset - 1);
  const range = { picked, from, to: offset + limit + 1, signal };
  const { text, characters } = await textOfRange(store, promise.id, parts, range);
  const begin = boundary(text, Math.min(offset - from, text.length));
  const most = wanted === "full" || selection.limit !== undefined ? limit : FIRST_PART;
  const shown = { ...parts, characters, text: text.slice(begin, boundary(text, begin + most)), offset: from + begin };
  return { ...view, result: { [PARTS]: shown } };
}

/** The longest result that is read whole, in characters: an isolate has 128 MB for all its requests. */
export const MOST_WHOLE = 4_500_000;

/** The promise with its whole result, where that is kept in chunks for the images, sounds and files in it. */
export async function withMedia(
  store: RemoteStore,
  promise: DurablePromise,
  signal?: AbortSignal,
): Promise<DurablePromise> {
  const parts = promise.job.answers ? partsIn(promise.value) : undefined;
  if (!parts?.media || parts.media > MAX_MEDIA || parts.characters > MOST_WHOLE) return promise;
  return { ...promise, value: await wholeResult(store, promise.id, parts, signal) };
}

/** A job's whole result. @throws {Error} when a chunk is gone */
export async function wholeResult(
  store: RemoteStore,
  job: string,
  parts: Parts,
  signal?: AbortSignal,
): Promise<unknown> {
  return JSON.parse((await textOfRange(store, job, parts, { from: 0, to: parts.characters, signal })).text);
}

/** The range from `from` to `to`, and the length of the whole: of the result, or of what is `picked` of its shape. */
async function textOfRange(
  store: RemoteStore,
  job: string,
  { id, characters }: Parts,
  { picked, from, to, signal }: { picked?: unknown; from: number; to: number; signal?: AbortSignal | undefined },
): Promise<Pick<Parts, "text" | "characters">> {
  // Texts of the shape, between which are positions in the whole: their beginnings, and their lengths.
  const pieces = picked === undefined ? ["", 0, characters] : JSON.stringify(picked).split(/(?<=:)"(\d+)\+(\d+)"/);
  let text = "";
  let all = 0;
  for (let i = 0; i < pieces.length; i += 3) {
    const words = String(pieces[i]);
    text += words.slice(Math.max(0, from - all), Math.max(0, to - all));
    all += words.length;
    const [begin, length] = [Number(pieces[i + 1] ?? 0), Number(pieces[i + 2] ?? 0)];
    const end = begin + Math.min(length, to - all);
    for (let at = begin + Math.max(0, from - all); at < end; ) {
      const n = Math.floor(at / PART);
      const part = await store.child(chunkId(job, id, n), signal);
      if (!part) throw new Error("a part of the result is gone");
      text += String(decodeValue(part.param)).slice(at - n * PART, end - n * PART);
      at = (n + 1) * PART;
    }
    all += length;
  }
  return { text, characters: all };
}
