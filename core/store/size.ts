/** How many bytes are stored of a job. */
import { decodeValue } from "./codec.ts";
import type { PromiseRecord, Value } from "./connection/protocol.ts";
import { partsIn } from "./parts.ts";

/** The header of a job's value that says what is stored of its steps, of what it has told, and of its child jobs, in bytes. */
export const STORED = "durable-mcp-stored";

/** What each job takes besides: its record, the task, the progress feed. */
const EACH = 1_000;

/**
 * The most that a job may store besides its arguments, its result and its files, in bytes: steps, what it tells, parts, its
 * clean-up.
 */
export const MOST_OF_A_JOB = 2 ** 26;

/** Marks say how much a job stores until its end or its clean-up does: the `n`th, up to 256 KiB times two to the power of `n`. */
const UNMARKED = 2 ** 18;
const FULL = 8; // the mark of MOST_OF_A_JOB; those beyond it are of files
const MARKS = 40;

/** The mark of so many bytes; 0 for less than is marked. */
export const markOf = (bytes: number): number => Math.min(MARKS, Math.max(0, Math.ceil(Math.log2(bytes / UNMARKED))));

/** The marks to make of a job that has the mark `marked`, up to the `n`th: the first, and beyond the full one all of them. */
export function marksTo(n: number, marked: number): number[] {
  const passed = Array.from({ length: n - marked }, (_, i) => marked + 1 + i);
  return passed.filter((each) => each === 1 || each >= Math.min(n, FULL));
}

/** What a job's marks say, in bytes; 0 without one. */
export async function markedBytes(exists: (n: number) => Promise<boolean>): Promise<number> {
  if (!(await exists(1))) return 0;
  const others = await Promise.all(Array.from({ length: FULL - 1 }, (_, i) => exists(i + 2)));
  let n = others.lastIndexOf(true) + 2;
  while (n >= FULL && n < MARKS && (await exists(n + 1))) n += 1;
  return UNMARKED * 2 ** n;
}

/** The longest table of contents of a result that is kept in parts, in characters of base64. */
const CONTENTS = 100_000;

/**
 * What a job takes: its arguments, and once it has ended its result and what its worker says is stored beside. Where no worker
 * says it, the parts of a large result.
 */
export function sizeOf({ param, value }: Pick<PromiseRecord, "param" | "value">): number {
  return EACH + bytesIn(param) + bytesIn(value) + (besideIn(value) ?? partsOf(value));
}

/** What a worker says is stored beside a job's arguments and result, at its end or that of its clean-up; undefined where none does. */
export function besideIn({ headers }: Value): number | undefined {
  const bytes = Number(headers?.[STORED]);
  return bytes >= 0 ? bytes : undefined;
}

function partsOf(value: Value): number {
  return (value.data?.length ?? 0) < CONTENTS ? (partsIn(decodeValue(value))?.characters ?? 0) : 0;
}

/** The bytes in base64. */
export const bytesIn = ({ data }: Value): number => Math.ceil(((data?.length ?? 0) * 3) / 4);
