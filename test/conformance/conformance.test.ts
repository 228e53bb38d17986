/** The public conformance suite against the product's edge and worker, which have the tools that it expects added. */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Stack, startStack } from "../support/stack.ts";

const NOT_APPLICABLE = join(import.meta.dirname, "not-applicable.yml");

const TASK_SCENARIOS = [
  "tasks-capability-negotiation",
  "tasks-dispatch-and-envelope",
  "tasks-lifecycle",
  "tasks-mrtr-composition",
  "tasks-mrtr-input",
  "tasks-request-headers",
  "tasks-request-state-removal",
  "tasks-required-task-error",
  "tasks-status-notifications",
  "tasks-wire-fields",
];

let stack: Stack;
let results: string;

beforeAll(async () => {
  results = await mkdtemp(join(tmpdir(), "conformance-"));
  stack = await startStack({
    programs: { edge: "test/conformance/conformance-edge.ts", worker: "test/conformance/conformance-worker.ts" },
  });
});

afterAll(async () => {
  await stack[Symbol.asyncDispose]();
  await rm(results, { recursive: true, force: true });
});

/**
 * Runs scenarios, and expects exit code 0: the checks that fail are those in `not-applicable.yml`. Returns how many checks
 * each scenario passed, without the check of the message format, and as `idle` the unlisted scenarios that passed none.
 */
async function run(name: string, selection: string[]) {
  const output = join(results, name);
  const args = ["server", "--url", stack.url, ...selection, "--expected-failures", NOT_APPLICABLE, "-o", output];
  const { exitCode, stdout } = await execa("conformance", args, { preferLocal: true, reject: false });
  const summary = stdout.slice(stdout.indexOf("=== SUMMARY ==="));
  expect(exitCode, summary).toBe(0);
  const listed = await readFile(NOT_APPLICABLE, "utf8");
  const passed = new Map<string, number>();
  for (const folder of await readdir(output)) {
    const checks: { id: string; status: string }[] = JSON.parse(
      await readFile(join(output, folder, "checks.json"), "utf8"),
    );
    const scenario = folder.replace(/^server-(.*)-\d{4}-\d{2}-\d{2}T.*$/, "$1");
    const ok = checks.filter(({ id, status }) => status === "SUCCESS" && id !== "wire-schema-valid");
    passed.set(scenario, ok.length);
  }
  const idle = [...passed].flatMap(([scenario, count]) => {
    return count > 0 || new RegExp(`- ${scenario}(:|$)`, "m").test(listed) ? [] : [scenario];
  });
  return { summary, passed, idle };
}

test.for(["2025-11-25", "2026-07-28"])(
  "every applicable scenario of revision %s passes",
  async (revision, { annotate }) => {
    const { summary, passed, idle } = await run(revision, ["--suite", "all", "--spec-version", revision]);
    await annotate(summary);
    expect(passed.size).toBeGreaterThan(30);
    expect(idle).toEqual([]);
  },
);

test("every scenario of the Tasks extension passes", async ({ annotate }) => {
  // The suite has these scenarios, with a few others, among the pending ones.
  const { summary, passed, idle } = await run("tasks", ["--suite", "pending"]);
  await annotate(summary);
  const scenarios = [...passed.keys()].filter((scenario) => scenario.startsWith("tasks-"));
  expect(scenarios.sort()).toEqual(TASK_SCENARIOS);
  // The suite has suspended this one; test/tasks/subscriptions.test.ts has its checks.
  expect(idle.filter((scenario) => scenarios.includes(scenario))).toEqual(["tasks-status-notifications"]);
});
