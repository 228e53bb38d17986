import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { serveHttp } from "../../../testing/stack/http-server.ts";
import { until } from "../../../testing/stack/program.ts";
import { ownGroup, startWorker, type WorkerProcess } from "../../../testing/stack/worker-process.ts";
import { monthBounds } from "../../../tools/weather/calendar.ts";
import type { Fault } from "../../../tools/weather/sample-archive/faults.ts";
import { type SampleArchive, startSampleArchive } from "../../../tools/weather/sample-archive/server.ts";
import { type Resonate, startResonate } from "../../support/resonate.ts";

vi.setConfig({ testTimeout: 60_000, maxConcurrency: 30 });

const { group, namespace, env } = ownGroup();
let archive: SampleArchive;
let resonate: Resonate;
let worker: WorkerProcess;

beforeAll(async () => {
  [archive, resonate] = await Promise.all([startSampleArchive(), startResonate()]);
  worker = await startWorker({ ...resonate.env, ...env, WEATHER_API_URL: archive.url, UPSTREAM_TIMEOUT_SECONDS: "5" });
});
afterAll(async () => {
  await worker?.[Symbol.asyncDispose]();
  await resonate?.[Symbol.asyncDispose]();
  await archive?.[Symbol.asyncDispose]();
});

/** Each test has its own month, so that all can run at once against one archive. */
let unused = 0;
function nextMonth() {
  const year = 2012 + Math.floor(unused / 12);
  const month = (unused++ % 12) + 1;
  const job = `weather_data_47.6_-122.3_${year}_${month}`;
  return { year, month, job, archived: `${year}-${String(month).padStart(2, "0")}`, ...monthBounds(year, month) };
}

const SEATTLE = { latitude: 47.6, longitude: -122.3 };
type Month = ReturnType<typeof nextMonth>;

const start = ({ job, year, month }: Month, more: { args?: object; timeoutAt?: number } = {}) =>
  resonate.start({
    id: namespace + job,
    func: "weather_data",
    group,
    ...more,
    args: { ...SEATTLE, year, month, ...more.args },
  });

const settled = ({ job }: Month) => resonate.settled(namespace + job, 30_000);

async function served({ first, last }: Month, timezone = "auto"): Promise<string> {
  const daily = "temperature_2m_max,temperature_2m_min,precipitation_sum";
  const query = { latitude: "47.6", longitude: "-122.3", start_date: first, end_date: last, daily, timezone };
  return (await fetch(`${archive.url}?${new URLSearchParams(query)}`)).text();
}

describe.concurrent("a month of weather", () => {
  test("equals the archive's answer byte for byte, and takes one request", async () => {
    const month = nextMonth();
    await start(month);
    const { state, value } = await settled(month);
    expect(state).toBe("resolved");
    expect(archive.control.count(month.archived)).toBe(1);
    expect(JSON.stringify(value.data)).toBe(await served(month));
    const lines = (await worker.waitForLog(month.job, "job done")).filter(({ msg }) => msg !== "job progress");
    expect(lines).toMatchObject([
      { level: "info", msg: "job started" },
      { level: "info", msg: "job done", outcome: "complete", duration_ms: expect.any(Number) },
    ]);
  });

  test("is in the requested time zone", async () => {
    const month = nextMonth();
    await start(month, { args: { timezone: "Asia/Tokyo" } });
    const { value } = await settled(month);
    expect(JSON.stringify(value.data)).toBe(await served(month, "Asia/Tokyo"));
    expect(value.data.utc_offset_seconds).toBe(32_400);
  });

  test("that was not over is marked as partial and says through which day it is complete", async () => {
    const month = nextMonth();
    archive.control.inject({ fault: { kind: "missing", days: 3 }, month: month.archived });
    await start(month, { args: { requested_on: `${month.archived}-20` } });
    const { value } = await settled(month);
    expect(value.data).toMatchObject({ partial: true, complete_through: `${month.archived}-17` });
    expect(value.data.daily.time.at(-1)).toBe(`${month.archived}-20`);
  });

  test("that is long past keeps its gaps", async () => {
    const month = nextMonth();
    archive.control.inject({ fault: { kind: "missing", days: 2 }, month: month.archived });
    await start(month);
    const { value } = await settled(month);
    expect(value.data.daily.temperature_2m_max.slice(-3)).toEqual([expect.any(Number), null, null]);
    expect(value.data).not.toHaveProperty("partial");
  });
});

describe.concurrent("a fault that passes", () => {
  test.each<[string, Fault, string]>([
    ["a reset connection", { kind: "refuse" }, "could not be reached (ECONNRESET)"],
    ["no answer", { kind: "hang", after: "nothing" }, "did not answer within 5 s"],
    ["an answer that stops half-way", { kind: "hang", after: "headers" }, "did not answer within 5 s"],
    ["status 408", { kind: "status", status: 408 }, "answered 408"],
    [
      "status 429",
      { kind: "status", status: 429, reason: "Minutely limit exceeded" },
      "answered 429: Minutely limit exceeded",
    ],
    ["status 500", { kind: "status", status: 500 }, "answered 500"],
    ["status 503", { kind: "status", status: 503 }, "answered 503"],
    ["a page instead of JSON", { kind: "rubbish", body: "html" }, "not JSON"],
    ["JSON cut off", { kind: "rubbish", body: "truncated" }, "not JSON"],
    ["JSON of another shape", { kind: "rubbish", body: "shape" }, "not daily weather"],
    ["a missing day", { kind: "rubbish", body: "days" }, "does not hold the days"],
    ["an endless answer", { kind: "rubbish", body: "huge" }, "larger than 1 MB"],
  ])("(%s) costs one more request and is logged", async (_what, fault, reason) => {
    const month = nextMonth();
    archive.control.inject({ fault, month: month.archived, times: 1 });
    await start(month);
    const { state, value } = await settled(month);
    expect(state).toBe("resolved");
    expect(archive.control.count(month.archived)).toBe(2);
    expect(JSON.stringify(value.data)).toBe(await served(month));
    const attempts = (await worker.waitForLog(month.job, "job done")).filter(({ msg }) => msg === "attempt failed");
    expect(attempts).toMatchObject([
      { attempt: 1, reason: expect.stringContaining(reason), retry_in_ms: expect.any(Number) },
    ]);
  });

  test.each([
    ["seconds", () => "2"],
    ["a date", () => new Date(Date.now() + 3_000).toUTCString()],
  ])("is waited out for the time that Retry-After gives in %s", async (_what, retryAfter) => {
    const month = nextMonth();
    const retry_after = retryAfter();
    archive.control.inject({ fault: { kind: "status", status: 429, retry_after }, month: month.archived, times: 1 });
    await start(month);
    expect(await settled(month)).toMatchObject({ state: "resolved" });
    const [first, second] = archive.control.requests.log.filter(({ query }) => query.includes(month.first));
    const due = retry_after === "2" ? (first?.at ?? 0) + 2_000 : Date.parse(retry_after);
    expect(second?.at).toBeGreaterThanOrEqual(due);
  });
});

describe.concurrent("a fault that stays", () => {
  test("and is the request's own fault fails the job at once, with the archive's reason", async () => {
    const month = nextMonth();
    await start(month, { args: { latitude: 52 } });
    const { state, value } = await settled(month);
    expect(state).toBe("rejected");
    expect(value.data.message).toBe("Open-Meteo answered 400: No data is available for this location");
    expect(archive.control.count(month.archived)).toBe(1);
    const lines = await worker.waitForLog(month.job, "job done");
    expect(lines.at(-1)).toMatchObject({ outcome: "failed", reason: value.data.message });
  });

  test("such as a redirect is not followed", async () => {
    const month = nextMonth();
    const location = archive.url.replace("/v1/archive", "/health");
    archive.control.inject({
      fault: { kind: "status", status: 302, location, reason: "moved" },
      month: month.archived,
    });
    await start(month);
    expect((await settled(month)).value.data.message).toBe("Open-Meteo answered 302: moved");
  });

  test("ends in failure before the deadline, with the last reason and the number of attempts", async () => {
    const month = nextMonth();
    archive.control.inject({ fault: { kind: "status", status: 503 }, month: month.archived });
    await start(month, { timeoutAt: Date.now() + 20_000 });
    const { state, value } = await settled(month);
    expect(state).toBe("rejected");
    const requests = archive.control.count(month.archived);
    expect(requests).toBeGreaterThan(1);
    expect(value.data.message).toMatch(new RegExp(`^gave up after ${requests} attempts: Open-Meteo answered 503`));
  });

  test("such as unusable answers is given up after four attempts", async () => {
    const month = nextMonth();
    archive.control.inject({ fault: { kind: "rubbish", body: "html" }, month: month.archived });
    await start(month);
    expect((await settled(month)).value.data.message).toBe("gave up after 4 attempts: Open-Meteo's answer is not JSON");
    expect(archive.control.count(month.archived)).toBe(4);
  });

  test("fails the job at once if Retry-After is longer than the job may take", async () => {
    const month = nextMonth();
    archive.control.inject({ fault: { kind: "status", status: 429, retry_after: "3600" }, month: month.archived });
    await start(month);
    expect((await settled(month)).value.data.message).toMatch(/^gave up after 1 attempt: Open-Meteo answered 429/);
    expect(archive.control.count(month.archived)).toBe(1);
  });
});

test.concurrent("a cancelled job sends no further request", async () => {
  const [cancelled, other] = [nextMonth(), nextMonth()];
  for (const { archived } of [cancelled, other]) {
    archive.control.inject({ fault: { kind: "status", status: 503 }, month: archived });
  }
  await start(cancelled);
  await worker.waitForLog(cancelled.job, "attempt failed");
  await resonate.call("promise.settle", { id: namespace + cancelled.job, state: "rejected_canceled", value: {} });
  const asked = archive.control.count(cancelled.archived);
  await start(other); // its third request comes later than the cancelled job's second would
  await until("the other job's third request", () => archive.control.count(other.archived) >= 3);
  expect(archive.control.count(cancelled.archived)).toBe(asked);
  expect(await resonate.get(namespace + cancelled.job)).toMatchObject({ state: "rejected_canceled" });
});

test("a month that has just ended and lacks its last day is not kept as a result", async () => {
  // For days after a month has ended the archive lacks its last days. The sample data is too old to show that.
  await using late = await serveHttp((req, res) => {
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
  const own = ownGroup();
  await using _worker = await startWorker({ ...resonate.env, ...own.env, WEATHER_API_URL: late.url });
  const now = new Date();
  const ended = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 0));
  const [year, month] = [ended.getUTCFullYear(), ended.getUTCMonth() + 1];
  const id = `${own.namespace}weather_data_47.6_-122.3_${year}_${month}`;
  await resonate.start({ id, func: "weather_data", args: { ...SEATTLE, year, month }, group: own.group });
  const { state, value } = await resonate.settled(id);
  expect(state).toBe("rejected");
  const lastThere = new Date(ended.getTime() - 4 * 86_400_000).toISOString().slice(0, 10);
  expect(value.data.message).toContain(`only up to ${lastThere}`);
});
