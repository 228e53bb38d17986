/** An operator's actions on callers, on kinds and on many jobs at once, and the messages of the audit log and the web hook. */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { callerOf } from "../../core/author/caller.ts";
import { run, until } from "../../testing/stack/program.ts";
import { bearerBindings, callerAt } from "../auth/support.ts";
import { newSecret, startReceiver } from "../events/receiver.ts";
import { eventsAt } from "../events/support.ts";
import type { Stack } from "../support/stack.ts";
import { accept } from "../tasks/support.ts";
import { operatorAt, startOperated } from "./support.ts";

vi.setConfig({ testTimeout: 150_000, hookTimeout: 150_000 });

const TOKEN = "operator-token-of-olga";
const TOKENS = { ada: "static-token-of-ada", bob: "static-token-of-bob", eve: "static-token-of-eve" };

let alerts: Awaited<ReturnType<typeof startReceiver>>;
let stack: Stack;
let operator: ReturnType<typeof operatorAt>;
const bindings: Record<string, string> = {};
beforeAll(async () => {
  alerts = await startReceiver(newSecret());
  const sha256 = createHash("sha256").update(TOKEN).digest("hex");
  Object.assign(bindings, {
    ...bearerBindings(TOKENS),
    OPERATOR_TOKENS: JSON.stringify([{ name: "olga", sha256 }]),
    ALERT_URL: alerts.url,
    ALERT_SECRET: alerts.secret,
    ALLOW_LOOPBACK_CALLBACKS: "1",
    MAX_STORED_BYTES: "60000",
  });
  stack = await startOperated({ bindings });
  operator = operatorAt(stack.origin, TOKEN);
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await alerts?.[Symbol.asyncDispose]();
});

const [ada, bob] = [() => callerAt(stack.url, TOKENS.ada), () => callerAt(stack.url, TOKENS.bob)];
type Caller = ReturnType<typeof callerAt>;
const timer = async (caller: Caller, timer_name: string, seconds = 1): Promise<string> =>
  (await caller.call("set_timer", { timer_name, seconds })).job_name;
const completes = async (caller: Caller, job: string) =>
  expect(Object.keys((await caller.call("await_result", { job_names: [job] })).results)).toEqual([job]);
const keyOf = async (name: string) => (await callerOf(name)).key;

/** Starts jobs until the worker, which learns of a pause within some seconds, holds one back; resolves with that job's name. */
const heldBack = (start: () => Promise<string>, key: string) =>
  until("a job to be held back", async () => {
    const name = await start();
    for (let looks = 0; looks < 10; looks++) {
      if (stack.workers[0]?.process.logsOf(key + name).some(({ msg }) => msg === "job paused")) return name;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return undefined;
  });

async function operate(...args: string[]): Promise<string> {
  const env = { OPERATOR_TOKEN: TOKEN };
  await using program = run("cli/main.ts", { args: ["operate", ...args, "--url", stack.origin], env });
  expect(await program.exited).toMatchObject({ exitCode: 0 });
  return program.output();
}

const told = (name: string, state: string) =>
  until(`the web hook to be told that ${name} has ${state}`, () =>
    alerts.delivered.find(({ body }) => body.name === name && body.state === state),
  );

test("a caller or a kind is paused while others go on, and the jobs held back end when it is resumed", async () => {
  await operator.act({ do: "pause", of: { caller: "ada" } });
  let n = 0;
  const held = await heldBack(() => timer(ada(), `held ${++n}`), await keyOf("ada"));
  await completes(bob(), await timer(bob(), "others"));
  expect((await operator.get("overview")).paused.callers).toContain(await keyOf("ada"));
  await operator.act({ do: "resume", of: { caller: "ada" } });
  expect((await operator.get("overview")).paused.callers).toEqual([]);
  await completes(ada(), held);

  await operator.act({ do: "pause", of: { kind: "timer" } });
  const kind = await heldBack(() => timer(bob(), `kind ${++n}`), await keyOf("bob"));
  expect((await operator.get("overview")).kinds_paused).toEqual(["timer"]);
  const { taskId } = await ada().tasks.call("slow_compute", { label: "other", seconds: 1 });
  await ada().tasks.reaches(taskId, "completed");
  await operator.act({ do: "resume", of: { kind: "timer" } });
  await completes(bob(), kind);
  expect((await operator.get("overview")).kinds_paused).toEqual([]);
});

test("many jobs of a caller are cancelled by a filter, which first counts them, and then by the number of the count", async () => {
  const names = await Promise.all(Array.from({ length: 12 }, (_, i) => timer(bob(), `long ${i}`, 3_600)));
  const other = await timer(ada(), "long", 3_600);
  const filter = ["--state", "sleeping", "--kind", "timer", "--caller", "bob"];
  const count = async () => JSON.parse(await operate("jobs", ...filter, "--json")).count;
  await until("all to sleep", async () => (await count()) === names.length);
  const preview = await operate("cancel", ...filter);
  expect(preview).toMatch(/^12 jobs\n[\s\S]*timer_long 11[\s\S]*\nNothing was done\. Do it: cancel --apply \d+\n$/);
  const statuses = async (caller: Caller, job_names: string[]) =>
    new Set(
      (await caller.call("probe_status", { job_names })).statuses.map(({ status }: { status: string }) => status),
    );
  expect(await statuses(bob(), names)).toEqual(new Set(["running"]));
  const n = /--apply (\d+)/.exec(preview)?.[1] ?? "";
  expect(JSON.parse(await operate("cancel", "--apply", n, "--json"))).toMatchObject({ total: 12, done: 12 });
  expect(await statuses(bob(), names)).toEqual(new Set(["cancelled"]));
  expect(await statuses(ada(), [other])).toEqual(new Set(["running"]));
  expect(await count()).toBe(0);
  const job = (await keyOf("bob")) + names[0];
  expect(await operator.get("job", { job })).toMatchObject({ caller: "bob", status: "cancelled" });
});

test("the operator's web hook gets signed alerts when a caller's web hooks fail and when a caller's storage is almost full", async () => {
  await using receiver = await startReceiver(newSecret());
  await using hooks = await eventsAt(stack.url, TOKENS.bob);
  const { url, secret } = receiver;
  const delivery = { mode: "webhook", url, secret };
  await hooks.request("events/subscribe", { name: "job.ended", delivery });
  receiver.state.answer = 500;
  await completes(bob(), await timer(bob(), "told of"));
  const eve = callerAt(stack.url, TOKENS.eve);
  let n = 0;
  await until("the storage to be full", () =>
    Promise.all(Array.from({ length: 10 }, () => timer(eve, `filling ${++n}`))).then(
      () => undefined,
      (error) => error.message.includes("MAX_STORED_BYTES"),
    ),
  );
  expect((await told("deliveries-fail", "begun")).body.says).toBe("web hooks fail of bob");
  expect((await told("storage-full", "begun")).body).toEqual({
    name: "storage-full",
    state: "begun",
    since: expect.stringMatching(/Z$/),
    says: "almost full: the storage of eve",
    runbook: "docs/operations.md#storage-full",
  });
  expect(alerts.forged).toEqual([]);
});

test("the exported audit log has callers' cancellations and answers by job, and the callers that a deployment adds or removes", async () => {
  const { tasks } = ada();
  const asked = await tasks.call("confirm_delete", { filename: "trailed" });
  await tasks.reaches(asked.taskId, "input_required");
  await tasks.update(asked.taskId, { confirm: accept({ confirm: true }) });
  await tasks.reaches(asked.taskId, "completed");
  await tasks.cancel((await tasks.call("confirm_delete", { filename: "left" })).taskId);
  await tasks.call("open_question", { name: "trailed" });
  const open = { job_name: "open_question_trailed", question: "colour" };
  await until("the question", () =>
    ada()
      .call("answer_question", { ...open, answer: { colour: "red" } })
      .catch(() => undefined),
  );
  await ada().call("cancel_job", { job_names: ["timer_long"] });
  const answer = { job_name: "timer_long", question: "none", answer: {} };
  await expect(ada().call("answer_question", answer)).rejects.toThrow();
  const before = await operator.get("audit-log", { limit: "1" });

  Object.assign(bindings, bearerBindings({ ada: TOKENS.ada, bob: "newer-token-of-bob", dan: "static-token-of-dan" }));
  const others = [...JSON.parse(bindings.OPERATOR_TOKENS ?? ""), { name: "oscar", sha256: "0".repeat(64) }];
  bindings.OPERATOR_TOKENS = JSON.stringify(others);
  await stack.edge.kill();
  await stack.edge.start();
  const lines = await until("the audit log to be complete", async () => {
    const exported = (await operate("audit-log")).trim().split("\n");
    return exported.some((line) => line.includes("callers changed")) ? exported : undefined;
  });
  const entries = lines.map((line) => JSON.parse(line));
  expect(entries.map(({ n }) => n)).toEqual(entries.map(({ n }) => n).toSorted((a: number, b: number) => a - b));
  expect(entries).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ who: "olga", what: "pause", about: { of: { caller: "ada" } } }),
      expect.objectContaining({
        who: "olga",
        what: "cancel",
        about: expect.objectContaining({ filter: { state: "sleeping", kind: "timer", caller: "bob" }, count: 12 }),
      }),
      expect.objectContaining({ who: "ada", what: "tasks/update", about: { jobs: '["confirm_delete_trailed"]' } }),
      expect.objectContaining({ who: "ada", what: "tasks/cancel", about: { jobs: '["confirm_delete_left"]' } }),
      expect.objectContaining({
        who: "ada",
        what: "answer_question",
        about: { jobs: '["open_question_trailed"]', question: "colour" },
      }),
      expect.objectContaining({ who: "ada", what: "cancel_job", about: { jobs: '["timer_long"]' } }),
      expect.objectContaining({
        who: "ada",
        what: "answer_question",
        about: { jobs: '["timer_long"]', question: "none", refused: true },
      }),
    ]),
  );
  const changed = entries.find(({ what }) => what === "callers changed");
  expect(changed.about.added.map((each: string) => each.split(" ")[0])).toEqual(["bob", "dan"]);
  expect(changed.about.removed.map((each: string) => each.split(" ")[0])).toEqual(["bob", "eve"]);
  const operators = entries.find(({ what }) => what === "operators changed");
  expect(operators.about).toEqual({ added: ["oscar 00000000"], removed: [] });
  expect(JSON.stringify(entries)).not.toContain(createHash("sha256").update(TOKENS.ada).digest("hex"));
  const last = before.entries[0].n;
  const later = (await operate("audit-log", "--after", String(last))).trim().split("\n");
  expect(later).toEqual(lines.filter((line) => JSON.parse(line).n > last));
});

test("each action that the edge's death interrupts is both done and in the audit log, or neither", async () => {
  const dan = callerAt(stack.url, "static-token-of-dan");
  const names = await Promise.all(Array.from({ length: 12 }, (_, i) => timer(dan, `cut ${i}`, 3_600)));
  const key = await keyOf("dan");
  const { entries } = await operator.get("audit-log", { limit: "1" });
  const since = () => operator.get("audit-log", { after: String(entries[0].n) });
  const acting = [
    { do: "cancel", jobs: names.map((name) => key + name) },
    { do: "pause", of: { caller: "dan" } },
    { do: "pause", of: { kind: "weather_data" } },
    { do: "stop-starts" },
    { do: "block", caller: "bob" },
  ].map((action) => operator.act(action).catch(() => {}));
  await until("one action to be in the audit log", async () => (await since()).entries.length > 0);
  await stack.edge.kill();
  await Promise.all(acting);
  await stack.edge.start();
  const said = await until(
    "all actions in the audit log to be done",
    async () => {
      const all: string[] = (await since()).entries.map(({ what }: { what: string }) => what);
      const ended = all.filter((what) => what.endsWith(": done"));
      return ended.length * 2 === all.length ? all : undefined;
    },
    60_000,
  );
  const allEntries = (await since()).entries;
  const noted = (what: string, about = "") =>
    allEntries.some(
      (entry: { what: string; about: object }) => entry.what === what && JSON.stringify(entry.about).includes(about),
    );
  const { paused, kinds_paused, settings } = await operator.get("overview");
  expect(paused.callers.includes(key)).toBe(noted("pause", "dan"));
  expect(kinds_paused.includes("weather_data")).toBe(noted("pause", "weather_data"));
  expect(settings.starts_stopped).toBe(noted("stop-starts"));
  expect(settings.blocked.includes("bob")).toBe(noted("block"));
  const { statuses } = await dan.call("probe_status", { job_names: names });
  const outcomes = new Set(statuses.map(({ status }: { status: string }) => status));
  expect(outcomes).toEqual(new Set([said.includes("cancel") ? "cancelled" : "running"]));
});
