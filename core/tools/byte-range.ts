/**
 * Results that are larger than one promise holds are kept in parts: promises of their own below the job's, which no list, no
 * look at the job and no replay reads. The job's result is a table of contents, by which any stretch of the whole is found.
 * Only answers of wrapped servers are kept so (what a durable function returns is bounded), and only deployments that have
 * such jobs load this. `durable/parts.ts` writes it.
 */

import type { DurablePromise, RemoteStore } from "../jobs/remote-store.ts";
import { type JobView, viewOf } from "../jobs/status.ts";
import { decodeValue } from "../store/codec.ts";
import { boundary, FIRST_PART, PARTS, partsIn, pick, type Selection } from "./results.ts";

/** How many characters of JSON text a part is of, but the last one. Each takes three bytes at most. */
export const PART = 100_000;

/** The table of contents of a result as JSON text, with a stretch of it: as it is stored its beginning. In characters. */
export interface Parts {
  /** What tells its parts from those of other results of the job. */
  id: string;
  /**
   * The objects in it, as far as they are told apart: in place of every other value where its text begins and how long that
   * is, as `begin+length`.
   */
  shape: unknown;
  /** How long all is, and its first fields. */
  characters: number;
  fields: Record<string, number>;
  /** The stretch, and where it begins. */
  text: string;
  offset: number;
}

export const partId = (job: string, id: string, n: number): string => `${job}:p${id}.${n}`;

/**
 * What there is to say of a job, whose result, where it is kept in parts, holds the stretch that is asked for, in place of its
 * beginning: as much as an answer of at most `limit` characters may hold.
 *
 * @throws {Error} when a part is gone: the job is being removed
 */
export async function viewOfStretch(
  store: RemoteStore,
  promise: DurablePromise,
  { result: wanted, fields = [], offset = 0 }: Selection,
  limit: number,
  signal?: AbortSignal,
): Promise<JobView> {
  const view = viewOf(promise.name, promise);
  const parts = partsIn(view.result);
  if (!parts || wanted === "none" || (wanted !== "full" && fields.length === 0 && offset === 0)) return view;
  const picked = fields.length > 0 ? pick(parts.shape, fields) : undefined;
  // One more at either end shows whether that is within a character.
  const from = Math.max(0, offset - 1);
  const { text, characters } = await stretchOf(store, promise.id, parts, {
    picked,
    from,
    to: offset + limit + 1,
    signal,
  });
  const begin = boundary(text, Math.min(offset - from, text.length));
  const most = wanted === "full" ? limit : FIRST_PART;
  const shown = { ...parts, characters, text: text.slice(begin, boundary(text, begin + most)), offset: from + begin };
  return { ...view, result: { [PARTS]: shown } };
}

/** All of a job's result. */
export async function wholeOf(store: RemoteStore, job: string, parts: Parts, signal?: AbortSignal): Promise<unknown> {
  return JSON.parse((await stretchOf(store, job, parts, { from: 0, to: parts.characters, signal })).text);
}

/** The stretch from `from` to `to`, and how long all is: of the result, or of what is `picked` of its shape. */
async function stretchOf(
  store: RemoteStore,
  job: string,
  { id, characters }: Parts,
  { picked, from, to, signal }: { picked?: unknown; from: number; to: number; signal?: AbortSignal | undefined },
): Promise<Pick<Parts, "text" | "characters">> {
  // Texts of the shape, between which are places in the whole: their beginnings, and their lengths.
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
      const part = await store.child(partId(job, id, n), signal);
      if (!part) throw new Error("a part of the result is gone");
      text += String(decodeValue(part.param)).slice(at - n * PART, end - n * PART);
      at = (n + 1) * PART;
    }
    all += length;
  }
  return { text, characters: all };
}
