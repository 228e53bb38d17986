/** Jobs, their tasks and their names after the retention. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { until } from "../../testing/stack/program.ts";
import { currentClient } from "../support/clients.ts";
import { rpc } from "../support/rpc.ts";
import { startStack } from "../support/stack.ts";
import { tasksAt } from "./support.ts";

test("a job is removed after its retention, and a new job of its name does not become the old task", async () => {
  const data = await mkdtemp(join(tmpdir(), "retention-"));
  const RETENTION_DAYS = String(3 / 86_400);
  process.env.RETENTION_DAYS = RETENTION_DAYS;
  try {
    await using stack = await startStack({ own: { data }, bindings: { RETENTION_DAYS } });
    await using client = await currentClient.connect(stack.url);
    const task = await tasksAt(stack.url).call("timer", { timer_name: "kept", seconds: 1 });
    const get = async () => rpc(stack.url, "tasks/get", { taskId: task.taskId });
    await until("the timer to have fired", async () => {
      const { content } = await client.callTool("get_timer_status", { timer_name: "kept" });
      return content.status === "complete";
    });
    const ended = await get();
    expect(ended.error).toBeUndefined();
    // `ttlMs` ends three seconds after the job's end; while the job ran, it ended later, after the deadline.
    const [created, gone] = [task, ended.result].map(({ createdAt, ttlMs }) => Date.parse(createdAt) + ttlMs);
    expect(gone - Date.parse(ended.result.lastUpdatedAt)).toBe(3_000);
    expect(created).toBeGreaterThanOrEqual(gone);
    await until("it to be removed", async () => (await get()).error?.code === -32602, 20_000);
    const { content } = await client.callTool("set_timer", { timer_name: "kept", seconds: 3_600 });
    expect(content.status).toBe("running");
    expect((await get()).error?.code).toBe(-32602);
    await rpc(stack.url, "tasks/cancel", { taskId: task.taskId });
    expect((await client.callTool("get_timer_status", { timer_name: "kept" })).content.status).toBe("running");
  } finally {
    delete process.env.RETENTION_DAYS;
    await rm(data, { recursive: true, force: true });
  }
});
