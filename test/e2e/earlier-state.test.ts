/**
 * What the version before wrote, and today's goes on with. `test/fixtures/resonate.db` is what its embedded server left
 * when its worker, its edge and it were ended in the middle of
 *
 * - `timer_far`, due in 2200, and `timer_soon`, due seconds later: both asleep,
 * - `timer_overdue`, due while there was no worker any more,
 * - a gathering at 47.8 of June 2015 that waited for its next attempt: the archive had answered 503,
 * - a range at 47.6 of 36 months that waited for the answer to its question,
 * - a range at 47.7 of 25 months that had been answered: the first 4 were there, the others waited for the archive.
 */
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { isAccount } from "../support/account.ts";
import { currentClient } from "../support/clients.ts";
import { wholeResult } from "../support/results.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { accept, tasksAt, type WireTask } from "../tasks/support.ts";

const FIXTURE = join(import.meta.dirname, "../fixtures/resonate.db");
const PLACE = { RESONATE_GROUP: "old", RESONATE_NAMESPACE: "old/" };
const TASK_KEY = "of the version before".padEnd(64, ".");

/** The ids that the version before gave its tasks. */
const RETRYING = "d2VhdGhlcl9kYXRhXzQ3LjhfLTEyMi4zXzIwMTVfNg.OsgVCnKSN-usgBWDZe3bAlznQSa3a2Bj0ZZGPOBdnkg";
const WAITING = "d2VhdGhlcl9yYW5nZV80Ny42Xy0xMjIuM18yMDEyLTAxXzIwMTQtMTI.QRF-9-0OstaTYMJUP-NvpbNxgLqysSdChxjgX1k3S94";
const ANSWERED = "d2VhdGhlcl9yYW5nZV80Ny43Xy0xMjIuM18yMDEyLTAxXzIwMTQtMDE.4JW7qG2P1jlqO_OJ6DHvIxrKHorN0VciArb1y2eVwOU";

vi.setConfig({ testTimeout: 60_000 });

let data: string;
let stack: Stack;
let tasks: ReturnType<typeof tasksAt>;
beforeAll(async () => {
  if (isAccount) return;
  data = await mkdtemp(join(tmpdir(), "earlier-state-"));
  const file = join(data, "resonate.db");
  await copyFile(FIXTURE, file);
  leftJustNow(file);
  stack = await startStack({ own: { data }, env: PLACE, bindings: { ...PLACE, TASK_KEY } });
  tasks = tasksAt(stack.url);
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  if (data) await rm(data, { recursive: true, force: true });
});

/** Moves every time in the state, so that it is as if it had been left at this moment. */
function leftJustNow(file: string): void {
  const db = new DatabaseSync(file);
  const { left } = db.prepare("SELECT max(createdAt) AS left FROM promises").get() as { left: number };
  const by = Date.now() - left;
  const moved = (columns: string[]) => columns.map((column) => `${column} = ${column} + ${by}`).join();
  db.exec(`
    UPDATE promises SET ${moved(["timeoutAt", "createdAt", "settledAt", "timer"])};
    UPDATE tasks SET ${moved(["timer"])};
  `);
  db.close();
}

/** The first days of the months that today's archive was asked for, at a place. */
function requests(latitude: number): string[] {
  const asked = stack.archive.control.requests.log.map(({ query }) => new URLSearchParams(query));
  return asked
    .filter((query) => query.get("latitude") === String(latitude))
    .map((query) => query.get("start_date") ?? "");
}

const months = (from: number, count: number) =>
  Array.from({ length: count }, (_, n) => new Date(Date.UTC(2012, from + n - 1, 1)).toISOString().slice(0, 10));

const endOf = async (taskId: string): Promise<WireTask> =>
  tasks.reaches(
    taskId,
    (task) => {
      expect(task.status).not.toBe("input_required");
      return task.status === "completed";
    },
    50_000,
  );

describe.skipIf(isAccount).concurrent("of the version before, in the Node host's file", () => {
  test("timers go on: one that slept, one that came due without a worker, one of long", async ({ expect }) => {
    await using client = await currentClient.connect(stack.url);
    const job_names = ["timer_soon", "timer_overdue"];
    const { content } = await client.callTool("await_result", { job_names, timeout_seconds: 40 });
    expect(content).toEqual({
      results: { timer_soon: "complete", timer_overdue: "complete" },
      errors: {},
      running: [],
    });

    const far = { timer_name: "far", status: "running", fires_at: "2200-01-01T00:00:00.000Z" };
    expect((await client.callTool("get_timer_status", { timer_name: "far" })).content).toMatchObject(far);
    const set = await client.callTool("set_timer", { timer_name: "far", seconds: 60 });
    expect(set.content).toMatchObject({ ...far, note: expect.stringContaining("unchanged") });
  });

  test("a gathering that is tried again ends", async ({ expect }) => {
    const { result } = await endOf(RETRYING);
    expect(result.structuredContent).toMatchObject({ status: "complete", result: { daily: { time: { length: 30 } } } });
    expect(requests(47.8)).toEqual(["2015-06-01"]);
  });

  test("a range's question is still asked, and is answered under its key", async ({ expect }) => {
    const { status, inputRequests } = await tasks.get(WAITING);
    expect([status, inputRequests.q1.params.message]).toEqual([
      "input_required",
      expect.stringContaining("takes 36 requests"),
    ]);
    await tasks.update(WAITING, { q1: accept({ confirm: true }) });
    const { result } = await endOf(WAITING);
    const whole = await wholeResult(stack.url, result.structuredContent.job_name);
    expect(whole.months).toHaveLength(36);
    expect(whole).not.toHaveProperty("missing");
    expect(requests(47.6).sort()).toEqual(months(1, 36));
  });

  test("a range that was answered is not asked again, and gathers the months that it lacks", async ({ expect }) => {
    const { result } = await endOf(ANSWERED);
    const whole = await wholeResult(stack.url, result.structuredContent.job_name);
    expect(whole.months).toHaveLength(25);
    expect(whole).not.toHaveProperty("missing");
    expect(requests(47.7).sort()).toEqual(months(5, 21));
  });
});
