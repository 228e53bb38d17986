/** The stored size of jobs in bytes. */
import { decodeValue, partsIn } from "./codec.ts";
import type { PromiseRecord, Value } from "./connection/protocol.ts";

/** The header of a job's value with the stored size of its steps, emitted values and child jobs, in bytes. */
export const STORED = "durable-mcp-stored";

/** What each job takes besides, in bytes: for its record, its task and its progress feed. */
const EACH = 1_000;

/**
 * The most that a job may store besides its arguments, its result and its files, in bytes: steps, emitted values, parts and its
 * clean-up.
 */
export const MOST_OF_A_JOB = 2 ** 26;

/** Marks tell how much a job stores while it has not ended: the `n`th stands for up to 256 KiB times two to the power of `n`. */
const UNMARKED = 2 ** 18;
const FULL = 8; // the mark of MOST_OF_A_JOB; only files lead to higher marks
const MARKS = 40;

/** The number of the mark for so many bytes; 0 if they need no mark. */
export const markOf = (bytes: number): number => Math.min(MARKS, Math.max(0, Math.ceil(Math.log2(bytes / UNMARKED))));

/** The marks to write for a job to get from mark `marked` to mark `n`: the first, the `n`th, and all from {@link FULL} on. */
export function marksTo(n: number, marked: number): number[] {
  const passed = Array.from({ length: n - marked }, (_, i) => marked + 1 + i);
  return passed.filter((each) => each === 1 || each >= Math.min(n, FULL));
}

/** The stored size by a job's marks, in bytes; 0 without a mark. */
export async function markedBytes(exists: (n: number) => Promise<boolean>): Promise<number> {
  if (!(await exists(1))) return 0;
  const others = await Promise.all(Array.from({ length: FULL - 1 }, (_, i) => exists(i + 2)));
  let n = others.lastIndexOf(true) + 2;
  while (n >= FULL && n < MARKS && (await exists(n + 1))) n += 1;
  return UNMARKED * 2 ** n;
}

/** The longest table of contents of a result that is stored in parts, in characters of base64. */
const CONTENTS = 100_000;

/**
 * The stored size of a job: its arguments and, once it has ended, its result and what its worker reports as stored besides. If no
 * worker reports that, the parts of a large result count instead.
 */
export function sizeOf({ param, value }: Pick<PromiseRecord, "param" | "value">): number {
  return EACH + bytesIn(param) + bytesIn(value) + (besideIn(value) ?? partsOf(value));
}

/** The same of a job whose parameter and value have been read, by their length in characters of base64. */
export function sizeOfRead(read: { characters: number; headers: Value["headers"]; value: unknown }): number {
  const { characters, headers, value } = read;
  const beside = besideIn({ ...(headers && { headers }) }) ?? partsIn(value)?.characters ?? 0;
  return EACH + Math.ceil((characters * 3) / 4) + beside;
}

/** What a worker reports as stored besides arguments and result, at the end of a job or clean-up; undefined if it does not. */
export function besideIn({ headers }: Value): number | undefined {
  const bytes = Number(headers?.[STORED]);
  return bytes >= 0 ? bytes : undefined;
}

function partsOf(value: Value): number {
  return (value.data?.length ?? 0) < CONTENTS ? (partsIn(decodeValue(value))?.characters ?? 0) : 0;
}

/** How many bytes the base64 stands for. */
export const bytesIn = ({ data }: Value): number => Math.ceil(((data?.length ?? 0) * 3) / 4);
