import { expect, test } from "vitest";
import type { ChartView } from "../../core/author/view.ts";
import { columnsOf, csvOf } from "./columns.ts";

const view: ChartView = {
  as: "chart",
  x: "months.daily.time",
  series: [
    { as: "band", label: "Temperature", low: "months.daily.min", high: "months.daily.max", unit: "months.units.min" },
    { as: "bars", label: "Rain", values: "months.daily.rain", unit: "mm" },
  ],
};
const january = {
  units: { min: "°C" },
  daily: { time: ["2014-01-30", "2014-01-31"], min: [1, null], max: [5, 6], rain: [0, 2.5] },
};
const february = { units: { min: "°C" }, daily: { time: ["2014-02-01"], min: [-3], max: [4], rain: [1] } };

test("columns collect the values of all items of a list, and skip items without values", () => {
  const columns = columnsOf(view, { months: [january, { error: "none" }, february] });
  expect(columns).toEqual({
    x: ["2014-01-30", "2014-01-31", "2014-02-01"],
    columns: [
      { label: "Temperature, highest", unit: "°C", values: [5, 6, 4] },
      { label: "Temperature, lowest", unit: "°C", values: [1, null, -3] },
      { label: "Rain", unit: "mm", values: [0, 2.5, 1] },
    ],
  });
});

test.each([
  ["nothing", undefined],
  ["no days", { months: [] }],
  ["malformed days", { months: [{ ...january, daily: { ...january.daily, time: ["soon", "later"] } }] }],
  ["columns of other lengths", { months: [{ ...january, daily: { ...january.daily, rain: [1] } }] }],
])("a result that has %s cannot be drawn", (_what, result) => {
  expect(columnsOf(view, result)).toBeUndefined();
});

test("CSV quotes fields where necessary, and contains no formulas", () => {
  const columns = [{ label: '=cmd(), "rain"', unit: undefined, values: [-1.5, null] }];
  expect(csvOf({ x: ["2014-01-01", "2014-01-02"], columns })).toBe(
    'time,"\'=cmd(), ""rain"""\r\n2014-01-01,-1.5\r\n2014-01-02,\r\n',
  );
});
