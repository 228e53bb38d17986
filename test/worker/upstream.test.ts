import { createServer } from "node:http";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { monthBounds } from "../../functions/jobs/index.ts";
import { startSampleArchive } from "../../infra/sample-archive/server.ts";
import { OpenMeteo } from "../../worker/open-meteo.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { ownGroup, startWorker } from "../support/worker.ts";

vi.setConfig({ testTimeout: 60_000 });

let resonate: Resonate;
beforeAll(async () => {
  resonate = await startResonate();
});
afterAll(() => resonate?.[Symbol.asyncDispose]());

const SEATTLE = { latitude: 47.6, longitude: -122.3 };
const months = Array.from({ length: 12 }, (_, i) => ({ ...SEATTLE, year: 2014, month: i + 1 }));

test("requests are bounded and in order, and one's turn is not part of its time-out", async () => {
  await using archive = await startSampleArchive();
  archive.control.inject({ fault: { kind: "slow", ms: 400 } });
  const client = new OpenMeteo({ url: archive.url, timeout: 1_500, concurrency: 2 });
  const deadline = Date.now() + 60_000;
  const periods = months.map(({ latitude, longitude, year, month }) => {
    const { first, last } = monthBounds(year, month);
    return { latitude, longitude, start_date: first, end_date: last, timezone: "auto" };
  });
  const answers = await Promise.all(periods.map((period) => client.daily(period, deadline)));
  expect(answers.map(({ daily }) => daily.time[0])).toEqual(periods.map(({ start_date }) => start_date));
  const { maxConcurrent, log } = archive.control.requests;
  expect(maxConcurrent).toBe(2);
  const order = log.map(({ query }) => new URLSearchParams(query).get("start_date") ?? "");
  expect(order.map((day) => Math.floor((Number(day.slice(5, 7)) - 1) / 2))).toEqual([
    0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5,
  ]);
});

test("a request whose turn comes after its job's deadline is not made", async () => {
  await using archive = await startSampleArchive();
  const client = new OpenMeteo({ url: archive.url, timeout: 1_000, concurrency: 1 });
  const period = { ...SEATTLE, start_date: "2014-01-01", end_date: "2014-01-31", timezone: "auto" };
  await expect(client.daily(period, Date.now() + 500)).rejects.toThrow("ran out");
  expect(archive.control.requests.total).toBe(0);
});

test("parameters of the configured address are kept, and not shown in errors", async () => {
  await using archive = await startSampleArchive();
  archive.control.inject({ fault: { kind: "status", status: 500 }, times: 1 });
  const client = new OpenMeteo({ url: `${archive.url}?apikey=s3cret`, timeout: 1_000, concurrency: 1 });
  const period = { ...SEATTLE, start_date: "2014-01-01", end_date: "2014-01-31", timezone: "auto" };
  const error = await client.daily(period, Date.now() + 60_000).catch((error: Error) => error);
  expect(String(error)).not.toContain("s3cret");
  expect(archive.control.requests.log[0]?.query).toMatch(/^apikey=s3cret&latitude=47.6&/);
});

test("a month that has just ended and lacks its last day is not kept as a result", async () => {
  // The archive as it is for days after a month has ended: the sample data is too old to show that.
  const late = createServer((req, res) => {
    const query = new URL(req.url ?? "", "http://archive").searchParams;
    const time: string[] = [];
    const end = Date.parse(query.get("end_date") ?? "");
    for (let day = Date.parse(query.get("start_date") ?? ""); day <= end; day += 86_400_000) {
      time.push(new Date(day).toISOString().slice(0, 10));
    }
    const values = time.map((_day, i) => (i < time.length - 4 ? 1.5 : null));
    const daily = { time, temperature_2m_max: values, temperature_2m_min: values, precipitation_sum: values };
    res.end(JSON.stringify({ ...SEATTLE, timezone: "GMT", daily_units: {}, daily }));
  });
  await new Promise<void>((resolve) => late.listen(0, "127.0.0.1", resolve));
  const address = late.address();
  const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  const { group, namespace, env } = ownGroup();
  await using _worker = await startWorker({ ...resonate.env, ...env, WEATHER_API_URL: url });
  const now = new Date();
  const ended = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 0));
  const [year, month] = [ended.getUTCFullYear(), ended.getUTCMonth() + 1];
  const id = `${namespace}weather_data_47.6_-122.3_${year}_${month}`;
  await resonate.start({ id, func: "weather_data", args: { ...SEATTLE, year, month }, group });
  const { state, value } = await resonate.settled(id);
  late.close();
  expect(state).toBe("rejected");
  const lastThere = new Date(ended.getTime() - 4 * 86_400_000).toISOString().slice(0, 10);
  expect(value.data.message).toContain(`only up to ${lastThere}`);
});
