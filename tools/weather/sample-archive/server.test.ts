import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type SampleArchive, startSampleArchive } from "./server.ts";

let archive: SampleArchive;
beforeAll(async () => {
  archive = await startSampleArchive({ controls: true });
});
afterAll(() => archive[Symbol.asyncDispose]());

const JULY = {
  latitude: "47.6",
  longitude: "-122.3",
  start_date: "2014-07-01",
  end_date: "2014-07-31",
  daily: "temperature_2m_max,precipitation_sum",
  timezone: "auto",
};

const ask = (change: Record<string, string> = {}) =>
  fetch(`${archive.url}?${new URLSearchParams({ ...JULY, ...change })}`);

test("serves real days in the Open-Meteo format, the same bytes every time", async () => {
  const text = await (await ask()).text();
  const body = JSON.parse(text);
  expect(body).toMatchObject({
    utc_offset_seconds: -25_200,
    timezone: "America/Los_Angeles",
    daily_units: { time: "iso8601", temperature_2m_max: "°C", precipitation_sum: "mm" },
  });
  expect(body.daily.time).toHaveLength(31);
  expect(body.daily.time[0]).toBe("2014-07-01");
  expect(body.daily.temperature_2m_max[0]).toBe(34.4); // 2014-07-01 in the data set
  expect(Object.keys(body.daily)).toEqual(["time", "temperature_2m_max", "precipitation_sum"]);
  expect(await (await ask()).text()).toBe(text);
});

test.each([
  ["a place elsewhere", { latitude: "52.5" }, "No data is available for this location"],
  ["a latitude off the globe", { latitude: "91" }, "Latitude must be in range"],
  ["a year outside", { end_date: "2016-01-01" }, "'end_date' is out of allowed range from 2012-01-01 to 2015-12-31"],
  ["a day that does not exist", { start_date: "2014-06-31" }, "Invalid date format"],
  ["an end before the start", { end_date: "2014-06-30" }, "End-date must be larger"],
  ["an unknown series", { daily: "humidity" }, "humidity"],
  ["an unknown time zone", { timezone: "Mars/Olympus" }, "Invalid timezone"],
])("refuses %s as Open-Meteo does", async (_what, change, reason) => {
  const response = await ask(change);
  expect(response.status).toBe(400);
  expect(await response.json()).toEqual({ error: true, reason: expect.stringContaining(reason) });
});

describe("over its control routes", () => {
  const control = (path: string, init?: RequestInit) => fetch(new URL(`/_control/${path}`, archive.url), init);

  test("applies a fault rule to its month and number of requests, and counts requests", async () => {
    const fault = { kind: "status", status: 503 };
    const rule = { method: "POST", body: JSON.stringify({ fault, month: "2014-08", times: 1 }) };
    expect((await control("faults", rule)).status).toBe(204);
    const august = { start_date: "2014-08-01", end_date: "2014-08-31" };
    expect((await ask()).status).toBe(200);
    expect((await ask(august)).status).toBe(503);
    expect((await ask(august)).status).toBe(200);
    const { byQuery } = await (await control("requests")).json();
    expect(byQuery[`${new URLSearchParams({ ...JULY, ...august })}`]).toBe(2);
  });

  test("refuses an unknown rule", async () => {
    expect((await control("faults", { method: "POST", body: '{"fault":{"kind":"gremlin"}}' })).status).toBe(400);
  });
});
