/** Helpers for the tables that runs print. */
import { quantile } from "simple-statistics";

export const round = (number: number): number => Math.round(number * 10) / 10;

/** The number, the median and the 99th percentile of samples. */
export const summary = (list: readonly number[] = []) =>
  list.length > 0
    ? { samples: list.length, p50: round(quantile([...list], 0.5)), p99: round(quantile([...list], 0.99)) }
    : {};

/** The same table with every cell changed. */
export const mapped = <A, B>(table: Readonly<Record<string, A>>, change: (cell: A) => B): Record<string, B> =>
  Object.fromEntries(Object.entries(table).map(([name, cell]) => [name, change(cell)]));

/** An option of `parseArgs` for a number, with its default. */
export const number = (value: number) => ({ type: "string", default: String(value) }) as const;
