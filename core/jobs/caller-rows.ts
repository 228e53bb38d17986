/** The rows of callers' objects, as a backup has them. */
import type { Row } from "../resonate/object-storage.ts";

/** The table of the line that begins the rows of a caller. It has no columns. */
export const BEGIN_TABLE = "begin";

/** A line of a backup: a row of the caller with the key `caller`, which is empty for callers without identity. */
export interface CallerRow {
  caller: string;
  table: string;
  row: Row;
}

/** The row after which to continue: the key of its caller, the index of its table in a backup, and its `rowid`. */
export type CallerRowPosition = readonly [caller: string, table: number, row: number];

export interface CallerRowPage {
  rows: CallerRow[];
  next?: CallerRowPosition;
}
