/** Stores a step's value that is too large for one promise: see `tools/byte-range.ts`. */
import type { Step } from "../author/context.ts";
import { hashed } from "../author/job.ts";
import { leaseOfStep } from "../engine/job-lease.ts";
import { PARTS_KEY, type Parts } from "../resonate/codec.ts";
import { chunkId } from "../resonate/ids.ts";
import { isRecord } from "../resonate/json.ts";
import { CHUNK_CHARACTERS } from "./byte-range.ts";
import { boundary } from "./results.ts";

/** How many chunks are written at once. */
const MAX_CONCURRENT_WRITES = 4;
/** How much of the value's text the table of contents holds, in characters. */
const BEGINNING_CHARACTERS = 2_000;
/** How many fields the table of contents lists, of one object and in all, and the limit of all their names together. */
const MAX_FIELDS = { perObject: 30, total: 300, characters: 20_000 };

/**
 * Stores a value in chunks, which are promises of the step's job. Resolves with the table of contents that stands for it
 * in the job's result. A repeated call with the same value finds the existing chunks. `media`: see {@link Parts}.
 *
 * @throws {LeaseLost}
 */
export async function storeInParts(step: Step, value: object, media = 0): Promise<Record<string, unknown>> {
  const lease = leaseOfStep.get(step);
  if (!lease) throw new Error("only a step of a job that runs keeps parts");
  const text = JSON.stringify(value);
  const id = await hashed(text);
  let next = 0;
  const lane = async () => {
    for (let n = next++; n * CHUNK_CHARACTERS < text.length; n = next++)
      await lease.create(
        chunkId(lease.id, id, n),
        text.slice(n * CHUNK_CHARACTERS, (n + 1) * CHUNK_CHARACTERS),
        "resolved",
      );
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT_WRITES }, lane));
  const { shape, fields } = contentsOf(value);
  const beginning = text.slice(0, boundary(text, BEGINNING_CHARACTERS));
  const parts: Parts = { id, shape, characters: text.length, fields, text: beginning, offset: 0 };
  if (media > 0) parts.media = media;
  return { [PARTS_KEY]: parts };
}

/** Where each field is in the JSON text of a value: see {@link Parts}. */
export function contentsOf(value: object): Pick<Parts, "shape" | "fields"> {
  const fields: Record<string, number> = {};
  let fieldCount = 0;
  let nameCharacters = 0;
  /** The shape of a value, and the length of its text, which is not made anew for each object around the value. */
  const shapeOf = (value: unknown, begin: number, isRoot = false): { shape: unknown; length: number } => {
    const keys = isRecord(value) ? Object.keys(value) : undefined;
    fieldCount += keys?.length ?? 0;
    nameCharacters += keys?.join("").length ?? 0;
    const isListed =
      keys &&
      keys.length <= MAX_FIELDS.perObject &&
      fieldCount <= MAX_FIELDS.total &&
      nameCharacters <= MAX_FIELDS.characters;
    if (!isListed) {
      const { length } = JSON.stringify(value);
      return { shape: `${begin}+${length}`, length };
    }
    let at = begin + 1;
    const shape: [string, unknown][] = [];
    for (const [key, field] of Object.entries(value as object)) {
      at += JSON.stringify(key).length + 1;
      const { shape: inner, length } = shapeOf(field, at);
      if (isRoot) fields[key] = length;
      shape.push([key, inner]);
      at += length + 1;
    }
    return { shape: Object.fromEntries(shape), length: Math.max(at - begin, 2) };
  };
  return { shape: shapeOf(value, 0, true).shape, fields };
}
