/**
 * How pages and cards show a job, as plain JSON. Paths lead into the result, like those of `probe_status`: `daily.time`. A
 * path through a list gives the values of all its items in turn.
 *
 * @example
 * const view: View = {
 *   as: "chart",
 *   x: "daily.time",
 *   series: [{ as: "bars", label: "Rain", values: "daily.rain", unit: "daily_units.rain" }],
 * };
 */
export type View = ChartView | CountdownView;

/**
 * A chart over days or moments, with at most two units. The first unit has its axis on the left.
 *
 * @example
 * const view: ChartView = { as: "chart", x: "days", series: [{ as: "line", label: "Visits", values: "visits" }] };
 */
export interface ChartView {
  as: "chart";
  /** The path to the days or moments, ISO 8601, in order. */
  x: string;
  series: readonly Series[];
}

/**
 * A series over `x`: a band between two values, bars from zero, or a line. `unit` is a path to the unit, or the unit itself.
 *
 * @example
 * const series: Series = { as: "band", label: "Temperature", low: "daily.min", high: "daily.max", unit: "°C" };
 */
export type Series = { label: string; unit?: string } & (
  | { as: "band"; low: string; high: string }
  | { as: "bars" | "line"; values: string }
);

/**
 * A countdown to a moment (ISO 8601) at the path `until` in the job's arguments.
 *
 * @example
 * const view: CountdownView = { as: "countdown", until: "fires_at" };
 */
export interface CountdownView {
  as: "countdown";
  until: string;
}
