import { expect, test } from "vitest";
import { TRACE_TAG } from "../../core/author/trace-context.ts";
import { jobTask, keptLog } from "../../test/support/job-run.ts";
import { traceIds } from "./task.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";

test.each([
  [`00-${TRACE}-00f067aa0ba902b7-01`, { trace_id: TRACE, msg: "brewing" }],
  ["no trace", { msg: "brewing" }],
  [undefined, { msg: "brewing" }],
])("the log of a job that was started in the span %s", async (span, line) => {
  const { lines, log } = keptLog();
  const task = jobTask({ promise: { tags: span === undefined ? {} : { [TRACE_TAG]: span } }, log });
  await traceIds.task?.(task, async () => {
    task.log.info("brewing");
    return "complete";
  });
  expect(lines).toEqual([line]);
});
