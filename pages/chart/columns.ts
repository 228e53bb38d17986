/** The columns of a result that a view shows, for the chart, the table beneath it and the CSV. */
import type { ChartView } from "../../core/author/index.ts";

/** A column, with one value for each day or moment. */
interface Column {
  label: string;
  unit: string | undefined;
  values: readonly (number | null)[];
}

export interface Columns {
  /** Days or moments, as in the result. */
  x: readonly string[];
  /** In the order of the view's series; a band has two, the higher first. */
  columns: readonly Column[];
}

/** The columns of a result that a view shows; undefined if the result does not fit the view. */
export function columnsOf(view: ChartView, result: unknown): Columns | undefined {
  const x = at(result, view.x.split("."));
  if (x.length === 0 || !x.every((moment) => typeof moment === "string" && !Number.isNaN(Date.parse(moment)))) {
    return undefined;
  }
  const columns = view.series.flatMap((series) => {
    const unit = unitOf(result, series.unit);
    if (series.as !== "band") return [{ label: series.label, unit, path: series.values }];
    return [
      { label: `${series.label}, highest`, unit, path: series.high },
      { label: `${series.label}, lowest`, unit, path: series.low },
    ];
  });
  const columnsWithValues = columns.map(({ label, unit, path }) => ({
    label,
    unit,
    values: at(result, path.split(".")).map(number),
  }));
  return columnsWithValues.every(({ values }) => values.length === x.length)
    ? { x: x as string[], columns: columnsWithValues }
    : undefined;
}

/** The columns as CSV (RFC 4180), with a line of headings. */
export function csvOf({ x, columns }: Columns): string {
  const head = ["time", ...columns.map(({ label, unit }) => (unit === undefined ? label : `${label} (${unit})`))];
  const rows = x.map((moment, i) => [moment, ...columns.map(({ values }) => String(values[i] ?? ""))]);
  return [head, ...rows].map((row) => `${row.map(csvField).join(",")}\r\n`).join("");
}

/** A CSV field. An apostrophe keeps spreadsheets from reading it as a formula. */
function csvField(field: string): string {
  const text = /^[=+@\t\r]|^-(?!\d)/.test(field) ? `'${field}` : field;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The values at a path; if the path meets a list, the values of all its items. */
function at(value: unknown, [key, ...rest]: readonly string[]): unknown[] {
  if (Array.isArray(value)) {
    return key === undefined ? value : value.flatMap((item) => at(item, [key, ...rest]));
  }
  if (key === undefined) return value === undefined ? [] : [value];
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return [];
  return at((value as Record<string, unknown>)[key], rest);
}

const number = (value: unknown): number | null => (typeof value === "number" ? value : null);

function unitOf(result: unknown, unit: string | undefined): string | undefined {
  if (unit === undefined) return undefined;
  const value = at(result, unit.split("."))[0];
  return typeof value === "string" ? value : unit;
}
