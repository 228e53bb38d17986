/** Stores a step's value that is too large for one promise: see `tools/byte-range.ts`. */
import type { Step } from "../author/context.ts";
import { hashed } from "../author/job.ts";
import { leaseOfStep } from "../engine/job-lease.ts";
import { PARTS, type Parts } from "../resonate/codec.ts";
import { chunkId } from "../resonate/ids.ts";
import { PART } from "./byte-range.ts";
import { boundary } from "./results.ts";

/** How many chunks are written at once. */
const AT_ONCE = 4;
/** How much of the value's text the table of contents holds, in characters. */
const BEGINNING = 2_000;
/** How many fields the table of contents lists, of one object and in all, and the limit of all their names together. */
const MOST = { each: 30, all: 300, characters: 20_000 };

/**
 * Stores a value in chunks, which are promises of the step's job. Resolves with the table of contents that stands for it
 * in the job's result. A repeated call with the same value finds the existing chunks. `media`: see {@link Parts}.
 *
 * @throws {LeaseLost}
 */
export async function keepInParts(step: Step, value: object, media = 0): Promise<Record<string, unknown>> {
  const lease = leaseOfStep.get(step);
  if (!lease) throw new Error("only a step of a job that runs keeps parts");
  const text = JSON.stringify(value);
  const id = await hashed(text);
  let next = 0;
  const lane = async () => {
    for (let n = next++; n * PART < text.length; n = next++)
      await lease.create(chunkId(lease.id, id, n), text.slice(n * PART, (n + 1) * PART), "resolved");
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  const { shape, fields } = contentsOf(value);
  const beginning = text.slice(0, boundary(text, BEGINNING));
  const parts: Parts = { id, shape, characters: text.length, fields, text: beginning, offset: 0 };
  if (media > 0) parts.media = media;
  return { [PARTS]: parts };
}

/** Where each field is in the JSON text of a value: see {@link Parts}. */
export function contentsOf(value: object): Pick<Parts, "shape" | "fields"> {
  const fields: Record<string, number> = {};
  let told = 0;
  let names = 0;
  /** The shape of a value, and the length of its text, which is not made anew for each object around the value. */
  const shapeOf = (each: unknown, begin: number, isAll = false): { shape: unknown; length: number } => {
    const keys = typeof each === "object" && each !== null && !Array.isArray(each) ? Object.keys(each) : undefined;
    told += keys?.length ?? 0;
    names += keys?.join("").length ?? 0;
    const isTold = keys && keys.length <= MOST.each && told <= MOST.all && names <= MOST.characters;
    if (!isTold) {
      const { length } = JSON.stringify(each);
      return { shape: `${begin}+${length}`, length };
    }
    let at = begin + 1;
    const shape: [string, unknown][] = [];
    for (const [key, field] of Object.entries(each as object)) {
      at += JSON.stringify(key).length + 1;
      const { shape: inner, length } = shapeOf(field, at);
      if (isAll) fields[key] = length;
      shape.push([key, inner]);
      at += length + 1;
    }
    return { shape: Object.fromEntries(shape), length: Math.max(at - begin, 2) };
  };
  return { shape: shapeOf(value, 0, true).shape, fields };
}
