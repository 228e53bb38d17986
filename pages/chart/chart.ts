/**
 * Draws a result by its author's view, in pages and in cards. Colors are the custom properties `--chart-1`, `--chart-2`,
 * `--chart-text` and `--chart-line` of the element. The browser's color scheme sets them, or a card's host on the root element.
 */
import "./language.ts";
import uPlot from "uplot";
import type { ChartView } from "../../core/author/index.ts";
import { type Columns, columnsOf } from "./columns.ts";

const heightOf = (width: number): number => Math.round(Math.min(380, Math.max(220, width * 0.45)));

/** With more values than this, lines are thin. */
const MAX_VALUES_OF_THICK_LINES = 200;

/** The share of the chart's height for bars that are beneath another series. */
const BAR_HEIGHT_SHARE = 0.4;

/**
 * Draws a chart as wide as `element`, with a legend of the values under the pointer, and again when its colors change. Returns a
 * function that removes it; undefined if the result does not fit the view, or if the browser cannot draw.
 */
export function drawChart(element: HTMLElement, view: ChartView, result: unknown): (() => void) | undefined {
  const columns = columnsOf(view, result);
  // Without a canvas the library would fail later and silently.
  if (!columns || !document.createElement("canvas").getContext("2d")) return undefined;
  let remove = plot(element, view, columns);
  const draw = () => {
    remove();
    remove = plot(element, view, columns);
  };
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", draw);
  const colorObserver = new MutationObserver(draw);
  colorObserver.observe(document.documentElement, { attributes: true });
  return () => {
    dark.removeEventListener("change", draw);
    colorObserver.disconnect();
    remove();
  };
}

/** Returns a function that removes the drawing. */
function plot(element: HTMLElement, view: ChartView, columns: Columns): () => void {
  const isByDay = columns.x.every((moment) => /^\d{4}-\d{2}-\d{2}$/.test(moment));
  const data = [columns.x.map((moment) => Date.parse(moment) / 1_000), ...columns.columns.map(({ values }) => values)];
  // Resolved by a property of the element, whose own color is not seen: a canvas does not accept var() and light-dark().
  const color = (name: string) => () => {
    element.style.color = `var(${name})`;
    return getComputedStyle(element).color;
  };
  const size = () => {
    const { paddingLeft, paddingRight } = getComputedStyle(element);
    const width = Math.max(200, element.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight));
    return { width, height: heightOf(width) };
  };
  const { series, bands, scales } = seriesOf(view, columns, color);
  const font = "12px system-ui, sans-serif";
  const axis = { stroke: color("--chart-text"), ticks: { show: false }, font };
  const grid = { stroke: color("--chart-line"), width: 1 };
  const chart = new uPlot(
    {
      ...size(),
      // Days are the same in all time zones; moments are shown in the viewer's zone.
      ...(isByDay && { tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1_000), "Etc/UTC") }),
      scales: Object.fromEntries(scales.map((scale) => [scale, { range: rangeOf(view, columns, scale) }])),
      axes: [
        { ...axis, grid: { show: false }, space: 70, values: (_plot, moments) => labelsOf(moments, isByDay) },
        ...scales.slice(0, 2).map((scale, i) => ({
          ...axis,
          grid: i === 0 ? grid : { show: false },
          scale,
          side: i === 0 ? 3 : 1,
          label: scale,
          labelSize: 16,
          labelGap: -2,
          size: 34,
          labelFont: font,
          // The area above the highest bar belongs to other series, so it has no labels.
          filter: (_plot: uPlot, ticks: number[]) =>
            ticks.map((tick) => (tick <= topOf(view, columns, scale) ? tick : null)),
        })),
      ],
      series: [{ label: isByDay ? "Day" : "Time", ...(isByDay && { value: "{YYYY}-{MM}-{DD}" }) }, ...series],
      bands,
      cursor: { y: false, drag: { x: true, y: false } },
    },
    data as unknown as uPlot.AlignedData,
    element,
  );
  describe(chart, descriptionOf(columns));
  const observer = new ResizeObserver(() => chart.setSize(size()));
  observer.observe(element);
  return () => {
    observer.disconnect();
    chart.destroy();
  };
}

/** The view's series in uPlot's form. The name of a scale is its unit. */
function seriesOf(view: ChartView, { x, columns }: Columns, color: (name: string) => () => string) {
  const series: uPlot.Series[] = [];
  const bands: uPlot.Band[] = [];
  const scales: string[] = [];
  for (const [n, part] of view.series.entries()) {
    const stroke = color(`--chart-${(n % 2) + 1}`);
    const fill = () =>
      `color-mix(in srgb, ${stroke()} ${part.as === "bars" ? 75 : x.length > MAX_VALUES_OF_THICK_LINES ? 45 : 22}%, transparent)`;
    const count = part.as === "band" ? 2 : 1;
    const first = series.length;
    for (const { label, unit = "" } of columns.slice(first, first + count)) {
      if (!scales.includes(unit)) scales.push(unit);
      const value = (_plot: uPlot, raw: number | null) => (raw === null ? "–" : `${raw} ${unit}`.trim());
      const common = { label, scale: unit, value, stroke, points: { show: false } };
      if (part.as !== "bars") series.push({ ...common, width: x.length > MAX_VALUES_OF_THICK_LINES ? 0.5 : 1.5 });
      else
        series.push({
          ...common,
          fill,
          width: 0,
          paths: uPlot.paths.bars?.({ size: [0.7, 24] }) as uPlot.Series.PathBuilder,
        });
    }
    if (part.as === "band") bands.push({ series: [first + 1, first + 2], fill });
  }
  return { series, bands, scales };
}

/** The range of a scale. Bars begin at 0, and leave room for the other series above them. */
function rangeOf(view: ChartView, columns: Columns, scale: string): uPlot.Range.Function {
  const hasBars = unitsOfBars(view, columns).includes(scale);
  const isAlone = view.series.every(({ as }) => as === "bars");
  return (_plot, min, max) => {
    if (!hasBars) return uPlot.rangeNum(min ?? 0, max ?? 1, 0.1, true);
    return [Math.min(0, min ?? 0), Math.max(max ?? 0, 1) / (isAlone ? 0.95 : BAR_HEIGHT_SHARE)];
  };
}

/** The highest value for which an axis has a label. */
function topOf(view: ChartView, columns: Columns, scale: string): number {
  if (!unitsOfBars(view, columns).includes(scale)) return Number.POSITIVE_INFINITY;
  const values = columns.columns.filter(({ unit = "" }) => unit === scale).flatMap((column) => column.values);
  return 1.15 * values.reduce((top: number, value) => Math.max(top, value ?? 0), 1);
}

/** Labels of times, days or months, depending on the distance of the ticks. */
function labelsOf(moments: readonly number[], isByDay: boolean): string[] {
  const distance = (moments[1] ?? 0) - (moments[0] ?? 0);
  const format: Intl.DateTimeFormatOptions =
    distance >= 28 * 86_400
      ? { month: "short", year: "numeric" }
      : distance >= 86_400
        ? { day: "numeric", month: "short" }
        : { hour: "2-digit", minute: "2-digit" };
  const { format: label } = new Intl.DateTimeFormat(undefined, { ...format, ...(isByDay && { timeZone: "UTC" }) });
  return moments.map((moment) => label(moment * 1_000));
}

function unitsOfBars(view: ChartView, { columns }: Columns): string[] {
  let n = 0;
  return view.series.flatMap(({ as }) => {
    const unit = columns[n]?.unit ?? "";
    n += as === "band" ? 2 : 1;
    return as === "bars" ? [unit] : [];
  });
}

/** Describes the canvas to screen readers in one sentence. The values are in the table. */
function describe(chart: uPlot, words: string): void {
  const canvas = chart.root.querySelector("canvas");
  canvas?.setAttribute("role", "img");
  canvas?.setAttribute("aria-label", words);
}

/** The content of a chart in one sentence. */
function descriptionOf({ x, columns }: Columns): string {
  const descriptions = columns.map(({ label, unit = "", values }) => {
    const numbers = values.filter((value) => value !== null);
    if (numbers.length === 0) return `${label}: no values`;
    const [low, high] = [numbers.reduce((a, b) => Math.min(a, b)), numbers.reduce((a, b) => Math.max(a, b))];
    return `${label} from ${low} to ${high} ${unit}`.trim();
  });
  return `Chart of ${x[0]} to ${x.at(-1)}. ${descriptions.join("; ")}.`;
}
