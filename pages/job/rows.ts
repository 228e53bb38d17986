/** Creates a chart of the rows of a CSV file. */
import type { ChartView } from "../../core/author/index.ts";

/** The largest number of columns that are drawn. More lines are hard to distinguish. */
const MAX_SERIES = 6;

const DATE_PATTERN = /^\d{4}-\d\d(-\d\d([T ]\d\d:\d\d.*)?)?$/;

/** The chart of rows with days or moments in the first column and numbers in others; undefined if there is nothing to draw. */
export function chartOf(
  head: readonly string[],
  rows: readonly string[][],
): { view: ChartView; result: Record<string, unknown[]> } | undefined {
  const x = rows.map(([first = ""]) => first.trim());
  if (x.length < 2 || !x.every((moment) => DATE_PATTERN.test(moment) && !Number.isNaN(Date.parse(moment))))
    return undefined;
  const numeric = head.flatMap((label, i) => {
    const values = rows.map((row) => (row[i]?.trim() ? Number(row[i]) : null));
    const isNumeric = i > 0 && values.some((value) => value !== null) && !values.some(Number.isNaN);
    return isNumeric ? [{ label, values, key: `column${i}` }] : [];
  });
  const columns = numeric.slice(0, MAX_SERIES);
  if (columns.length === 0) return undefined;
  const series = columns.map(({ label, key }) => ({ as: "line" as const, label, values: key }));
  return {
    view: { as: "chart", x: "x", series },
    result: { x, ...Object.fromEntries(columns.map(({ key, values }) => [key, values])) },
  };
}
