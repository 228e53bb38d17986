import { expect, test } from "vitest";
import { until } from "../../testing/program.ts";
import { rpcHeaders } from "../support/rpc.ts";
import { startStack } from "../support/stack.ts";

test("the edge's line about a request and the worker's lines about the job it started bear one request id", async () => {
  await using stack = await startStack();
  const params = { name: "set_timer", arguments: { timer_name: "logged", seconds: 1 } };
  const response = await fetch(stack.url, {
    method: "POST",
    headers: { ...rpcHeaders("tools/call", params), "mcp-protocol-version": "2025-11-25" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
  });
  expect(response.status).toBe(200);
  const request_id = response.headers.get("x-request-id");
  expect(request_id).toMatch(/\S{8,}/);

  const said = (lines: { [field: string]: unknown }[]) => lines.filter((line) => line.request_id === request_id);
  const edge = await until("the edge's line", () => said(stack.edge.process.logs())[0]);
  expect(edge).toMatchObject({ msg: "request", method: "tools/call", tool: "set_timer", status: 200 });
  // The runner writes its lines beside the edge's.
  const worker = (stack.workers[0] ?? stack.edge).process;
  const done = await until("the worker's last line", () => said(worker.logs()).find((line) => line.msg === "job done"));
  expect(done).toMatchObject({ outcome: "complete", job: edge.job });
  expect(edge.job).toMatch(/timer_logged$/);
});
