import { expect, test } from "vitest";
import type { Metrics } from "../../core/author/context.ts";
import type { LineLog } from "../../core/jobs/line-log.ts";
import { jobMetrics, registry } from "./task.ts";

/** The metrics of a job, and what they log. */
function scene() {
  const lines: object[] = [];
  const warn = (fields: object | string) => lines.push(fields as object);
  return { lines, metrics: jobMetrics({ warn } as unknown as LineLog) };
}

const REFUSED: [what: string, metric: string, record: (metrics: Metrics, n: number) => void, reason: RegExp][] = [
  ["labels that differ", "durable_job_pages_total", ({ count }, n) => count("pages", { [`label${n}`]: "a" }), /label2/],
  ["a malformed name", "durable_job_a page_total", ({ count }) => count("a page"), /name/],
  ["a time that is none", "durable_job_page_seconds", ({ observe }) => observe("page", Number.NaN), /number/],
];

test.each(REFUSED)(
  "%s: the call records nothing, says so once, and fails no job",
  async (_what, metric, record, reason) => {
    const { lines, metrics } = scene();
    for (const n of [1, 2, 3]) record(metrics, n);
    expect(lines).toEqual([{ metric, reason: expect.stringMatching(reason) }]);
  },
);

test("calls with the labels of the first are counted", async () => {
  const { lines, metrics } = scene();
  for (const status of ["200", "404", "200"]) metrics.count("answers", { status });
  expect(await registry.getSingleMetricAsString("durable_job_answers_total")).toContain('{status="200"} 2');
  expect(lines).toEqual([]);
});
