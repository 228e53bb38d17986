/** Makes a chart of the rows of a CSV file. */
import type { ChartView } from "../../core/author/view.ts";

/** The largest number of columns that are drawn. More lines are hard to tell apart. */
const LINES = 6;

const DAY = /^\d{4}-\d\d(-\d\d([T ]\d\d:\d\d.*)?)?$/;

/** The chart of rows with days or moments in the first column and numbers in others; undefined if there is nothing to draw. */
export function chartOf(
  head: readonly string[],
  rows: readonly string[][],
): { view: ChartView; result: Record<string, unknown[]> } | undefined {
  const x = rows.map(([first = ""]) => first.trim());
  if (x.length < 2 || !x.every((moment) => DAY.test(moment) && !Number.isNaN(Date.parse(moment)))) return undefined;
  const numeric = head.flatMap((label, i) => {
    const values = rows.map((row) => (row[i]?.trim() ? Number(row[i]) : null));
    const isNumeric = i > 0 && values.some((value) => value !== null) && !values.some(Number.isNaN);
    return isNumeric ? [{ label, values, key: `column${i}` }] : [];
  });
  const drawn = numeric.slice(0, LINES);
  if (drawn.length === 0) return undefined;
  const series = drawn.map(({ label, key }) => ({ as: "line" as const, label, values: key }));
  return {
    view: { as: "chart", x: "x", series },
    result: { x, ...Object.fromEntries(drawn.map(({ key, values }) => [key, values])) },
  };
}
