/** What a deployment's definitions may not be: the edge does not start. */
import { expect, test } from "vitest";
import * as z from "zod";
import { defineDurableTool, type ToolSchedule } from "../core/index.ts";
import { createEdge } from "./edge.ts";

const edge = (schedule: ToolSchedule) => {
  const tool = defineDurableTool({
    name: "nightly_report",
    title: "Report",
    description: "Writes a report.",
    input: z.object({}),
    id: () => "1",
    schedule,
  });
  return () => createEdge({ name: "reports", version: "1.0.0", tools: [tool] });
};

test.each<[ToolSchedule, string]>([
  [{ cron: "0 25 * * *" }, '"25" is no hour, from 0 to 23'],
  [{ cron: "every day" }, "must have five fields"],
  [{ cron: "0 3 * * someday" }, '"someday" is no day of the week'],
  [{ cron: "*/90 * * * *" }, "a step of 90 is over 60"],
  [{ every: 1_000 }, "must be 60 seconds or more"],
  [{ cron: "0 3 * * *", timezone: "Europe/Zuerich" }, 'timezone: "Europe/Zuerich" is unknown'],
  [{}, "give one of cron, every and at"],
])("the schedule %j of a definition is refused at the start, with the tool's name", (schedule, problem) => {
  const start = edge(schedule);
  expect(start).toThrow("The schedule of the tool nightly_report: ");
  expect(start).toThrow(problem);
});

test.each(["0 3 * * 1-5", "*/15 0-6,22 1,15 jan-mar SUN", "0 0 L * ?", "0 12 * * 1#2", "5 4 * * 7", "0 9 * * 5L"])(
  "the cron %s of a definition is accepted",
  (cron) => {
    expect(edge({ cron })).not.toThrow();
  },
);
