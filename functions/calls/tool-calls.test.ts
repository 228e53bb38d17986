import { expect, test } from "vitest";
import * as z from "zod";
import type { Job } from "../../core/author/job.ts";
import { abilitiesOf } from "../../core/tools/abilities.ts";
import type { CallRequest } from "../../core/tools/call-feature.ts";
import { defineDurableTool } from "../../core/tools/job-tool.ts";
import { pageLinks } from "../../features/page-links/call.ts";
import { ToolCalls } from "./tool-calls.ts";

const input = z.object({ city: z.string() });
const named = { title: "Forecast", description: "Forecasts the weather.", input };
const forecast = defineDurableTool({ ...named, name: "forecast", id: () => "today" });
const startForecast = defineDurableTool({
  ...named,
  name: "start_forecast",
  job: forecast.job,
  output: z.object({ job_name: z.string() }),
  answer: ({ jobName }) => ({ job_name: jobName }),
});

test("the answer to a start that finds a job with other arguments says so, and has the address of the job's page", async () => {
  const create = async (job: Job, name: string) => ({ name, job, args: { city: "Berlin" }, state: "pending" });
  const store = { create, logName: (name: string) => name };
  const request = {
    ...abilitiesOf(),
    inputResponses: {},
    cancelsByLeaving: true,
    signal: new AbortController().signal,
    scope: { caller: {}, requestLog: {}, store },
  } as unknown as CallRequest;
  const links = pageLinks(async (job) => `https://edge.example/${job}`);
  const calls = new ToolCalls([startForecast], [links], { rules: {} } as never);
  const { content, structuredContent } = (await calls.call("start_forecast", { city: "Rome" }, request)) as never;
  expect(structuredContent).toMatchObject({
    job_name: "forecast_today",
    view_url: "https://edge.example/forecast_today",
  });
  expect(JSON.stringify(content)).toContain("was started with other arguments");
});
