import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type HttpServer, serveHttp } from "../../testing/stack/http-server.ts";
import { answerRequest } from "../../tools/weather/sample-archive/archive.ts";
import { CLIENTS, type McpClient } from "../support/clients.ts";
import { SEATTLE } from "../support/months.ts";
import { type Stack, startStack } from "../support/stack.ts";

const DAY = 86_400_000;
const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);

/** How many days the real archive is behind. */
const LAG = 5;

/**
 * Stands for the archive of today: it serves weather of 2012 under the requested days, and null for the last few days. The
 * data of the sample archive is too old for a month that is not over.
 */
let present: HttpServer;
let stack: Stack;
beforeAll(async () => {
  present = await serveHttp((req, res) => {
    const query = new URL(req.url ?? "", "http://archive").searchParams;
    const [start, end] = [query.get("start_date") ?? "", query.get("end_date") ?? ""];
    query.set("start_date", start.replace(/^\d+/, "2012"));
    query.set("end_date", end.replace(/^\d+/, "2012"));
    const { daily, ...rest } = answerRequest(query);
    const { time = [], ...series } = daily;
    const days = time.map((day) => String(day).replace(/^2012/, start.slice(0, 4)));
    const known = dayOf(Date.now() - LAG * DAY);
    const values = Object.entries(series).map(([name, list]) => [
      name,
      list.map((value, i) => ((days[i] ?? "") <= known ? value : null)),
    ]);
    res.end(JSON.stringify({ ...rest, daily: { time: days, ...Object.fromEntries(values) } }));
  });
  stack = await startStack({ env: { WEATHER_API_URL: present.url } });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await present?.[Symbol.asyncDispose]();
});

describe.each(CLIENTS)("a month that is not over, $kind", ({ connect }) => {
  let client: McpClient;
  beforeAll(async () => {
    client = await connect(stack.url);
  });
  afterAll(() => client?.close());

  test("is gathered as of today, under a name with the date, and the result says that it is partial", async () => {
    const before = dayOf(Date.now());
    const [year, month] = [Number(before.slice(0, 4)), Number(before.slice(5, 7))];
    const { content: started } = await client.callTool("start_gathering", { ...SEATTLE, year, month });
    const asked = started.job_name.split("@")[1];
    expect(asked >= before && asked <= dayOf(Date.now())).toBe(true);
    expect(started).toMatchObject({
      job_name: `weather_data_47.6_-122.3_${year}_${month}@${asked}`,
      note: expect.stringContaining(`partial, as of ${asked}`),
    });
    const { content } = await client.callTool("await_result", { job_names: [started.job_name] });
    const { partial, partial_reason, complete_through, daily } = content.results[started.job_name];
    expect([partial, partial_reason]).toEqual([true, expect.stringContaining("not over")]);
    expect([daily.time[0], daily.time.at(-1)]).toEqual([`${asked.slice(0, 8)}01`, asked]);
    const known = daily.time.filter((_day: string, i: number) => daily.temperature_2m_max[i] !== null);
    expect(complete_through).toBe(known.at(-1) ?? null);
  });

  test.each([
    ["next month", (now: Date) => [now.getUTCFullYear(), now.getUTCMonth() + 2]],
    ["this month of next year", (now: Date) => [now.getUTCFullYear() + 1, now.getUTCMonth() + 1]],
    ["9999", () => [9999, 12]],
  ])("is refused if it has not begun (%s)", async (_when, monthAt) => {
    const [year = 0, month = 0] = monthAt(new Date());
    const first = new Date(Date.UTC(year, month - 1, 1)); // the month after December is January
    const args = { ...SEATTLE, year: first.getUTCFullYear(), month: first.getUTCMonth() + 1 };
    for (const tool of ["start_gathering", "weather_data"]) {
      const { isError, text } = await client.callTool(tool, args);
      expect(isError).toBe(true);
      expect(text).toMatch(
        `month: ${dayOf(first.getTime()).slice(0, 7)} has not begun. Accepted: a month up to the present one`,
      );
    }
  });
});
