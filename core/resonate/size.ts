/** The stored size of jobs in bytes. */
import { decodeValue, partsIn } from "./codec.ts";
import type { PromiseRecord, Value } from "./connection/protocol.ts";

/** The header of a job's value with the stored size of its steps, emitted values and child jobs, in bytes. */
export const STORED_HEADER = "durable-mcp-stored";

/** What each job takes besides, in bytes: for its record, its task and its progress feed. */
const JOB_OVERHEAD_BYTES = 1_000;

/**
 * The most that a job may store besides its arguments, its result and its files, in bytes: steps, emitted values, parts and its
 * clean-up.
 */
export const MAX_JOB_BYTES = 2 ** 26;

/** Marks tell how much a job stores while it has not ended: the `n`th stands for up to 256 KiB times two to the power of `n`. */
const MARK_UNIT_BYTES = 2 ** 18;
const FULL_MARK = 8; // the mark of MAX_JOB_BYTES; only files lead to higher marks
const MAX_MARK = 40;

/** The number of the mark for so many bytes; 0 if they need no mark. */
export const markOf = (bytes: number): number =>
  Math.min(MAX_MARK, Math.max(0, Math.ceil(Math.log2(bytes / MARK_UNIT_BYTES))));

/** The marks to write for a job to get from mark `marked` to mark `n`: the first, the `n`th, and all from {@link FULL_MARK} on. */
export function marksTo(n: number, marked: number): number[] {
  const between = Array.from({ length: n - marked }, (_, i) => marked + 1 + i);
  return between.filter((each) => each === 1 || each >= Math.min(n, FULL_MARK));
}

/** The stored size by a job's marks, in bytes; 0 without a mark. */
export async function markedBytes(exists: (n: number) => Promise<boolean>): Promise<number> {
  if (!(await exists(1))) return 0;
  const others = await Promise.all(Array.from({ length: FULL_MARK - 1 }, (_, i) => exists(i + 2)));
  let n = others.lastIndexOf(true) + 2;
  while (n >= FULL_MARK && n < MAX_MARK && (await exists(n + 1))) n += 1;
  return MARK_UNIT_BYTES * 2 ** n;
}

/** The longest table of contents of a result that is stored in parts, in characters of base64. */
const MAX_CONTENTS_CHARACTERS = 100_000;

/**
 * The stored size of a job: its arguments and, once it has ended, its result and what its worker reports as stored besides. If no
 * worker reports that, the parts of a large result count instead.
 */
export function sizeOf({ param, value }: Pick<PromiseRecord, "param" | "value">): number {
  return JOB_OVERHEAD_BYTES + bytesIn(param) + bytesIn(value) + (reportedBytesIn(value) ?? partsOf(value));
}

/** The same of a job whose parameter and value have been read, by their length in characters of base64. */
export function sizeOfRead(read: {
  characters: number;
  omitted?: number | undefined;
  headers: Value["headers"];
  value: unknown;
}): number {
  const { omitted = 0, headers, value } = read;
  const characters = read.characters + omitted;
  const beside = reportedBytesIn({ ...(headers && { headers }) }) ?? partsIn(value)?.characters ?? 0;
  return JOB_OVERHEAD_BYTES + Math.ceil((characters * 3) / 4) + beside;
}

/** What a worker reports as stored besides arguments and result, at the end of a job or clean-up; undefined if it does not. */
export function reportedBytesIn({ headers }: Value): number | undefined {
  const bytes = Number(headers?.[STORED_HEADER]);
  return bytes >= 0 ? bytes : undefined;
}

function partsOf(value: Value): number {
  return (value.data?.length ?? 0) < MAX_CONTENTS_CHARACTERS ? (partsIn(decodeValue(value))?.characters ?? 0) : 0;
}

/** How many bytes the base64 stands for. */
export const bytesIn = ({ data }: Value): number => Math.ceil(((data?.length ?? 0) * 3) / 4);
