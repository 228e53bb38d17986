import { describe, expect, test } from "vitest";
import { duration, entryText, lineText, wholeDuration, withTime } from "../../cli/terminal/report.ts";

const line = (entry: object) => entryText("worker", { level: "info", ...entry });

describe("a line of the worker's log", () => {
  test.each([
    [{ msg: "job started", job: "timer_tea" }, "started  timer_tea"],
    [
      { msg: "attempt failed", job: "w", attempt: 2, reason: "status 503", retry_in_ms: 1500 },
      "retrying w: attempt 2 failed: status 503; next attempt in 1.5 s",
    ],
    [{ msg: "attempt failed", job: "w", attempt: 5, reason: "no route" }, "failing  w: attempt 5 failed: no route"],
    [{ msg: "job done", job: "w", outcome: "complete", duration_ms: 89.4 }, "complete w (89 ms)"],
    [
      { msg: "job done", job: "w", outcome: "failed", duration_ms: 61_000, reason: "out of range" },
      "failed   w (1 min): out of range",
    ],
    [{ msg: "job progress", job: "w", doing: "7 of 36 months" }, "running  w: 7 of 36 months"],
    [{ msg: "job progress", job: "w", step: { name: "charge", attempt: 1 } }, undefined],
    [
      { msg: "job progress", job: "w", doing: "waiting for an answer: Go on?" },
      "running  w: waiting for an answer: Go on?",
    ],
    [{ level: "warn", msg: "job blocked", job: "w", reason: 'step "b" came' }, 'blocked  w: step "b" came'],
    [{ level: "warn", msg: "job not handed back", reason: "refused" }, "worker   job not handed back: refused"],
    [{ level: "error", msg: "oops", err: { message: "deep" } }, "worker   oops: deep"],
  ])("%j reads %j", (entry, text) => expect(line(entry)).toBe(text));

  test("is left out if a user does not need it", () => {
    expect(line({ msg: "ready", health_url: "http://127.0.0.1:8081/health" })).toBeUndefined();
  });

  test("cannot control the terminal or pass for another line", () => {
    const reason = "\u001b[2Jgone\r\n12:00:00  complete all\u0007";
    const text = line({ msg: "job done", job: "w", outcome: "failed", duration_ms: 1, reason });
    expect(text).toBe("failed   w (1 ms): gone 12:00:00  complete all");
  });
});

describe("an error with its stack", () => {
  const error = {
    stack: `Error: boom
    at charge (file://${process.cwd()}/tools/shop/order.ts:7:9)
    at async core (file://${process.cwd()}/node_modules/@resonatehq/sdk/core.js:1:2)
    at async file://${process.cwd()}/worker/execution/executor.ts:189:16
    at process.processTicksAndRejections (node:internal/process/task_queues:105:5)`,
  };

  test("shows its message and its place in the project", () => {
    const done = { msg: "job done", job: "order_1", outcome: "failed", duration_ms: 5, reason: "boom" };
    expect(line({ ...done, error })).toBe(
      `failed   order_1 (5 ms): boom\n${" ".repeat(19)}at charge (tools/shop/order.ts:7:9)`,
    );
  });

  test("shows the engine's frames when there are no others", () => {
    const stack = error.stack.replace(/.*order\.ts.*\n/, "");
    expect(line({ level: "error", msg: "oops", error: stack })).toBe(
      `worker   oops: Error: boom\n${" ".repeat(19)}at async worker/execution/executor.ts:189:16`,
    );
  });
});

describe("output of the author's code", () => {
  const author = (service: string, entry: object) => entryText(service, { ...entry }, "author");

  test("is shown under dev only", () => {
    expect(author("worker", { level: "info", job: "order_1", msg: "charged" })).toBe("worker   order_1: charged");
    expect(lineText("worker", "printed", "stdout", "author")).toBe("worker   printed");
    expect(line({ job: "order_1", msg: "charged" })).toBeUndefined();
  });

  test("is shown without the engine's lines", () => {
    expect(author("edge", { level: "info", msg: "request", job: "order_1" })).toBeUndefined();
    expect(author("worker", { level: "debug", msg: "job continued", job: "order_1" })).toBeUndefined();
    expect(author("worker", { level: "info", msg: "job progress", job: "order_1" })).toBeUndefined();
  });

  test("includes that of a wrapped server, without a job, because it may belong to any call", () => {
    const entry = { level: "info", msg: "wrapped server says", job: "acme.a.1", says: "out of paper" };
    expect(author("worker", entry)).toBe("server   out of paper");
    expect(line(entry)).toBeUndefined();
  });
});

test("text that is not a log line is shown only if it is from stderr", () => {
  expect(lineText("edge", "Uncaught exception", "stderr", "news")).toBe("edge     Uncaught exception");
  expect(lineText("edge", "listening", "stdout", "news")).toBeUndefined();
  expect(lineText("edge", "", "stderr", "news")).toBeUndefined();
});

test("lines carry the time of day", () => {
  expect(withTime("started  timer_tea", new Date(2026, 0, 2, 3, 4, 5))).toBe("03:04:05  started  timer_tea");
});

test.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [1_000, "1 s"],
  [90_000, "1.5 min"],
  [7_200_000, "2 h"],
  [31_536_000_000, "365 days"],
])("%d ms is written as %s", (ms, text) => expect(duration(ms)).toBe(text));

test.each([
  [0, "0 s"],
  [7_900, "7 s"],
  [151_000, "2 min 31 s"],
  [10_800_000, "3 h"],
  [10_807_000, "3 h"],
  [97_200_000, "1 day 3 h"],
])("%d ms in whole units is written as %s", (ms, text) => expect(wholeDuration(ms)).toBe(text));
