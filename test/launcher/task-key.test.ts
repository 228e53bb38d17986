/** Task ids under `npm start` remain valid after a restart if the state does. */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, test } from "vitest";
import { JobHandles } from "../../core/tools/job-handles.ts";
import { tasksAt } from "../tasks/support.ts";
import { launch } from "./launcher.ts";

let data: string;
beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), "tasks-launcher-"));
});
afterAll(() => rm(data, { recursive: true, force: true }));

/** A stack that runs until it is disposed of. It is started without npm, whose part start.test.ts tests. */
async function started(args: string[], env: Record<string, string> = {}) {
  const launcher = await launch({ via: "node", args: ["--sample-weather", ...args], env });
  await launcher.printed("Ready.");
  return {
    ...tasksAt(launcher.url),
    async [Symbol.asyncDispose]() {
      launcher.signal("SIGTERM");
      await launcher.exited;
    },
  };
}

const timer = (timer_name: string) => ["timer", { timer_name, seconds: 3_600 }] as const;

test.concurrent("a task id is valid after a restart, and its key is kept with the state, readable by the owner only", async ({
  expect,
}) => {
  let taskId: string;
  {
    await using first = await started(["--data", data]);
    taskId = (await first.call(...timer("kept"))).taskId;
  }
  const { mode } = await stat(join(data, "task-key"));
  expect((mode & 0o777).toString(8)).toBe("600");
  await using second = await started(["--data", data]);
  expect(await second.get(taskId)).toMatchObject({ taskId, status: "working" });
  expect((await second.call(...timer("kept"))).taskId).toBe(taskId);
});

test.concurrent("with --memory the key is as short-lived as the state", async ({ expect }) => {
  const ids = [];
  for (let run = 0; run < 2; run++) {
    await using stack = await started(["--memory"]);
    ids.push((await stack.call(...timer("forgotten"))).taskId);
  }
  expect(ids[0]).not.toBe(ids[1]);
});

test.concurrent("TASK_KEY is used when it is set", async ({ expect }) => {
  const TASK_KEY = randomBytes(32).toString("hex");
  await using stack = await started(["--memory"], { TASK_KEY });
  const { taskId, createdAt } = await stack.call(...timer("given key"));
  expect(taskId).toBe(await new JobHandles(TASK_KEY, "").seal("timer_given key", "", Date.parse(createdAt)));
});
