/**
 * How a job is shown to people, as its author describes it: plain JSON, which pages and cards draw. Paths lead into the
 * result, as those of `probe_status` do: `daily.time`; of a list, what each of its items has there, one after another.
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
 * A chart over days or moments. At most two units, the first of which has its axis on the left.
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
 * What is drawn over `x`: between two values, from nothing up to one, or from one to the next. `unit` is the path to it, or
 * the unit itself.
 *
 * @example
 * const series: Series = { as: "band", label: "Temperature", low: "daily.min", high: "daily.max", unit: "°C" };
 */
export type Series = { label: string; unit?: string } & (
  | { as: "band"; low: string; high: string }
  | { as: "bars" | "line"; values: string }
);

/**
 * How long it is until a moment, ISO 8601, that the path `until` leads to in the job's arguments.
 *
 * @example
 * const view: CountdownView = { as: "countdown", until: "fires_at" };
 */
export interface CountdownView {
  as: "countdown";
  until: string;
}
