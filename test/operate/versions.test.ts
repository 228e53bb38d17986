/** A worker of a version that must not run beside the edge reports it before it takes a job, or as soon as both run. */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test, vi } from "vitest";
import { run, until } from "../../testing/stack/program.ts";
import { callerAt } from "../auth/support.ts";
import { operatorAt, startOperated } from "./support.ts";

vi.setConfig({ testTimeout: 150_000 });

const LATER = `--import ${pathToFileURL(resolve("test/operate/later-form.ts")).href}`;

test("it does not start beside the edge; if it starts while the edge is away, the overview, the doctor and its log report it", async () => {
  const env: Record<string, string> = {};
  await using stack = await startOperated({ env });
  const operator = operatorAt(stack.origin);
  const told = async () => (await operator.get("overview")).alerts.map(({ name }: { name: string }) => name);
  const completes = async (timer_name: string) => {
    const caller = callerAt(stack.url, "");
    const { job_name } = await caller.call("set_timer", { timer_name, seconds: 1 });
    expect(Object.keys((await caller.call("await_result", { job_names: [job_name] })).results)).toEqual([job_name]);
  };
  await until("the worker to be known", async () => (await operator.get("overview")).workers[0]?.form === 1);
  expect(await told()).not.toContain("mixed-versions");

  env.NODE_OPTIONS = LATER;
  const refused = `this worker keeps jobs in form 2, and the edge at ${new URL(stack.origin).host} in form 1: they must not run side by side`;
  await expect(stack.addWorker()).rejects.toThrow(refused);
  await completes("beside none");

  await stack.edge.kill();
  const later = await stack.addWorker();
  await stack.edge.start();
  await until("the worker's log to report it", () =>
    later.process.logs().find(({ level, reason }) => level === "error" && reason === refused),
  );
  await until("the overview to report it", async () => (await told()).includes("mixed-versions"));
  const args = ["doctor", "--url", stack.origin, "--json"];
  await using doctor = run("cli/main.ts", { args, env: { OPERATOR_TOKEN: "this machine's user needs none" } });
  expect(await doctor.exited).toMatchObject({ exitCode: 1 });
  expect(JSON.parse(doctor.output()).findings).toContainEqual({
    check: "alerts",
    status: "failed",
    fix: "See docs/operations.md#mixed-versions.",
    detail: expect.stringMatching(
      /^the worker \w{8} keeps jobs in form 2, and this edge in form 1: they must not run side by side$/,
    ),
  });
});
