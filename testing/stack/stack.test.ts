import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { startStack, ToolCallFailed } from "../index.ts";
import { freePort } from "./port.ts";
import { until } from "./program.ts";

const DAY_SECONDS = 86_400;

describe("a stack in a test", async () => {
  test("has a clock: a timer of a day fires when the test has advanced it by a day, and not before", async () => {
    await using stack = await startStack();
    const { job_name, fires_at } = await stack.call("set_timer", { timer_name: "tea", seconds: DAY_SECONDS });
    await stack.clock.advance((DAY_SECONDS - 60) * 1_000);
    expect(await stack.call("get_timer_status", { timer_name: "tea" })).toMatchObject({
      status: "running",
      remaining_seconds: expect.toSatisfy((left) => left <= 60 && left > 30),
    });
    await stack.clock.advance(60_000);
    const { statuses } = await stack.call("probe_status", { job_names: [job_name] });
    expect(statuses).toMatchObject([{ status: "complete", result: "complete" }]);
    expect(Date.parse(statuses[0].finished_at)).toBeGreaterThanOrEqual(Date.parse(fires_at));

    // A job that starts now uses the moved time.
    const later = await stack.call("set_timer", { timer_name: "later", seconds: DAY_SECONDS });
    expect(Date.parse(later.fires_at) - Date.parse(fires_at)).toBeGreaterThanOrEqual(DAY_SECONDS * 1_000 - 1);
  });

  test("answers a call that waits, whose stream stays open while the time moves", async () => {
    await using stack = await startStack();
    const { job_name } = await stack.call("set_timer", { timer_name: "tea", seconds: DAY_SECONDS });
    const waits = stack.call("await_result", { job_names: [job_name] });
    await stack.clock.advance((DAY_SECONDS - 60) * 1_000);
    // A stream checks its deadline every two seconds.
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    await stack.clock.advance(60_000);
    expect(await waits).toMatchObject({ results: { [job_name]: "complete" } });
  });

  test("has a clock that advances past a stopped worker, by the sum of calls at the same time, and never back", async () => {
    await using stack = await startStack();
    const start = stack.clock.now;
    for (const part of [stack.edge, ...stack.workers]) part.process.signal("SIGSTOP");
    await Promise.all([stack.clock.advance(DAY_SECONDS * 1_000), stack.clock.advance(DAY_SECONDS * 1_000)]);
    expect(stack.clock.now - start).toBeGreaterThanOrEqual(2 * DAY_SECONDS * 1_000);
    for (const part of [stack.edge, ...stack.workers]) part.process.signal("SIGCONT");
    await until("the edge to follow", async () => {
      const { fires_at } = await stack.call("set_timer", { timer_name: `t${stack.clock.now}`, seconds: DAY_SECONDS });
      return Date.parse(fires_at) - start >= 3 * DAY_SECONDS * 1_000;
    });
    for (const ms of [Number.NaN, Number.POSITIVE_INFINITY, -1]) {
      await expect(stack.clock.advance(ms)).rejects.toThrow(`The time cannot advance by ${ms} ms.`);
    }
  });

  test("uses no variable of a deployment from the shell: it keeps files of its own, and leaves those of the deployment", async () => {
    const folder = await mkdtemp(join(tmpdir(), "deployment-"));
    // A file that a job of the deployment is writing.
    const fileFolder = join(folder, "a".repeat(40));
    await mkdir(fileFolder);
    await writeFile(join(fileFolder, `${"b".repeat(16)}-1.1.1~1`), "half");
    try {
      vi.stubEnv("FILES_URL", folder);
      vi.stubEnv("ENCRYPTION_KEYS", Buffer.alloc(32).toString("base64"));
      vi.stubEnv("LOG_LEVEL", "warn");
      const fixture = "test/files/fixture/files";
      await using stack = await startStack({ edge: `${fixture}-edge.ts`, worker: `${fixture}-worker.ts` });
      // A worker sweeps files a minute after its start, by the moved time.
      await stack.clock.advance(2 * DAY_SECONDS * 1_000);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      expect(await readdir(fileFolder)).toHaveLength(1);
      const { result } = await stack.call("make_file", { name: "letter", file: "letter.txt", size: 1_000 });
      expect(result.file).toMatchObject({ name: "letter.txt", size: 1_000 });
    } finally {
      vi.unstubAllEnvs();
      await rm(folder, { recursive: true, force: true });
    }
  });

  test("refuses a log level of the worker at which it would not see that the worker is ready", async () => {
    await expect(startStack({ env: { LOG_LEVEL: "warn" } })).rejects.toThrow(
      "LOG_LEVEL: a test reads lines of level info",
    );
  });

  test("continues after all its parts were killed and started again", async () => {
    await using stack = await startStack();
    const { job_name } = await stack.call("set_timer", { timer_name: "tea", seconds: DAY_SECONDS });
    const parts = [stack.edge, stack.resonate, ...stack.workers];
    await Promise.all(parts.map((part) => part.kill()));
    await stack.resonate.start();
    await Promise.all([stack.edge.start(), stack.workers[0]?.start()]);
    await stack.clock.advance(DAY_SECONDS * 1_000);
    const { results } = await stack.call("await_result", { job_names: [job_name] });
    expect(results).toEqual({ [job_name]: "complete" });
  });

  test("uses the ports of its options, and a killed edge ends a waiting call without an unhandled rejection", async () => {
    const port = await freePort();
    await using stack = await startStack({ ports: { edge: port } });
    expect(new URL(stack.url).port).toBe(String(port));
    await stack.call("set_timer", { timer_name: "tea", seconds: DAY_SECONDS });
    const waits = stack.call("await_result", { job_names: ["timer_tea"] });
    const unawaited = stack.call("await_result", { job_names: ["timer_tea"] });
    await stack.edge.kill();
    await expect(waits).rejects.toThrow(/^(the edge exited during the call of await_result|fetch failed)$/);
    expect(unawaited).toBeInstanceOf(Promise);
    await stack.edge.start();
    expect(await stack.call("list_jobs")).toMatchObject({ jobs: [{ job_name: "timer_tea" }] });
  });

  test("reports no second error if an assertion fails while calls wait", async () => {
    const rejections: unknown[] = [];
    const failing = async () => {
      await using stack = await startStack();
      await stack.call("set_timer", { timer_name: "tea", seconds: DAY_SECONDS });
      // The first call has a handler already, the second would be awaited later: Vitest reports rejections without a handler.
      const waits = [1, 2].map(() => stack.call("await_result", { job_names: ["timer_tea"] }));
      waits[0]?.catch((error) => rejections.push(error));
      expect("what came").toBe("what was expected");
      await Promise.all(waits);
    };
    const error = await failing().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: "AssertionError", message: expect.stringContaining("what was expected") });
    await until("the call to end", () => rejections.length === 1);
  });

  test("throws the message with which a tool refuses a call", async () => {
    await using stack = await startStack();
    const call = stack.call("set_timer", { timer_name: "tea", seconds: -1 });
    await expect(call).rejects.toThrow(ToolCallFailed);
    await expect(call).rejects.toThrow("seconds");
  });
});
