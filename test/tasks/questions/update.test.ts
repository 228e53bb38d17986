/** Answers to a task's questions. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { journalEntryId } from "../../../core/resonate/ids.ts";
import type { Gate } from "../../support/gate.ts";
import { type GatedStack, startGatedStack } from "../../support/stack.ts";
import { accept, TASK_PROGRAMS, tasksAt, type WireTask } from "../support.ts";

let gate: Gate;
let stack: GatedStack;
let tasks: ReturnType<typeof tasksAt>;
beforeAll(async () => {
  stack = await startGatedStack({ programs: TASK_PROGRAMS });
  gate = stack.gate;
  tasks = tasksAt(stack.url);
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const acknowledged = { resultType: "complete" };

/** Starts a task that asks whether a file may be deleted, and returns it with the key of its question. */
async function asked(filename: string) {
  const { taskId } = await tasks.call("confirm_delete", { filename });
  const task = await tasks.reaches(taskId, "input_required");
  const [key = ""] = Object.keys(task.inputRequests);
  return { taskId, key, task };
}

async function resultOf(taskId: string): Promise<unknown> {
  return (await tasks.reaches(taskId, "completed")).result.structuredContent.result;
}

describe("a question", () => {
  test("is shown as an elicitation in every tasks/get until it is answered", async () => {
    const { taskId, key, task } = await asked("shown");
    expect(task).toMatchObject({ statusMessage: "Delete shown?" });
    expect(task.inputRequests).toEqual({
      [key]: {
        method: "elicitation/create",
        params: {
          mode: "form",
          message: "Delete shown?",
          requestedSchema: { type: "object", properties: { confirm: { type: "boolean" } }, required: ["confirm"] },
        },
      },
    });
    expect((await tasks.get(taskId)).inputRequests).toEqual(task.inputRequests);

    expect(await tasks.update(taskId, { [key]: accept({ confirm: true }) })).toMatchObject(acknowledged);
    const after = await tasks.get(taskId);
    expect(after.status).not.toBe("input_required");
    expect(Date.parse(after.lastUpdatedAt)).toBeGreaterThan(Date.parse(task.lastUpdatedAt));
    expect(await resultOf(taskId)).toBe("deleted shown");
  });

  test.each(["decline", "cancel"])("may be answered with %s", async (action) => {
    const { taskId, key } = await asked(action);
    expect(await tasks.update(taskId, { [key]: { action } })).toMatchObject(acknowledged);
    expect(await resultOf(taskId)).toBe(`kept ${action}`);
  });

  test("may be answered with additional properties", async () => {
    const { taskId, key } = await asked("more");
    await tasks.update(taskId, { [key]: { ...accept({ confirm: true, why: "because" }), _meta: {} } });
    expect(await resultOf(taskId)).toBe("deleted more");
  });
});

test("a question without fields may be accepted without content", async () => {
  const { taskId } = await tasks.call("open_question", { name: "formless" });
  const [key = ""] = Object.keys((await tasks.reaches(taskId, "input_required")).inputRequests);
  expect(await tasks.update(taskId, { [key]: { action: "accept" } })).toMatchObject(acknowledged);
  expect(await resultOf(taskId)).toEqual(accept({}));
});

describe("an answer that does not fit its question is an error that says why, and the question stays open", () => {
  const MISFITS: [string, unknown, RegExp][] = [
    ["a value of another type", accept({ confirm: "yes" }), /boolean/],
    ["a property missing", accept({}), /confirm/],
    ["content missing", { action: "accept" }, /confirm: /],
    ["content that is not an object", accept(["confirm"]), /action "accept" and content/],
    ["an unknown action", { action: "maybe" }, /action/],
    ["no action", { confirm: true }, /action/],
    ["a boolean", true, /action/],
    ["null", null, /action/],
  ];
  test.each(MISFITS)("%s", async (what, answer, reason) => {
    const { taskId, key, task } = await asked(what.replaceAll(" ", "-"));
    const refusal = await tasks.update(taskId, { [key]: answer }).catch((error) => error);
    expect(refusal).toMatchObject({ code: -32602, message: expect.stringMatching(reason) });
    expect(refusal.message).toMatch(new RegExp(`Nothing was done: inputResponses.${key}: .*The question stays open`));
    expect(await tasks.get(taskId)).toMatchObject({ status: "input_required", inputRequests: task.inputRequests });
    await tasks.update(taskId, { [key]: accept({ confirm: true }) });
    expect(await resultOf(taskId)).toMatch(/^deleted/);
  });

  test("two answers of which only one fits: neither is taken", async () => {
    const { taskId } = await tasks.call("multi_input", { name: "one fits" });
    const { inputRequests } = await tasks.reaches(taskId, bothOpen);
    const [name = "", sure = ""] = Object.keys(inputRequests);
    const answers = { [name]: accept({ name: "Ada" }), [sure]: accept({ confirm: 1 }) };
    await expect(tasks.update(taskId, answers)).rejects.toMatchObject({ code: -32602 });
    expect(Object.keys((await tasks.get(taskId)).inputRequests)).toEqual([name, sure]);
  });

  test("no answers at all", async () => {
    const { taskId } = await asked("no-answers");
    await expect(tasks.update(taskId, undefined as never)).rejects.toMatchObject({ code: -32602 });
  });
});

function bothOpen({ inputRequests = {} }: WireTask): boolean {
  return Object.keys(inputRequests).length === 2;
}

test("two questions may be answered one by one in any order, each under its own key", async () => {
  const { taskId } = await tasks.call("multi_input", { name: "one by one" });
  const { inputRequests } = await tasks.reaches(taskId, bothOpen);
  const [name = "", sure = ""] = Object.keys(inputRequests);
  expect(inputRequests[name].params.message).toBe("What is your name?");

  await tasks.update(taskId, { [sure]: accept({ confirm: true }) });
  expect(await tasks.get(taskId)).toMatchObject({ status: "input_required", statusMessage: "What is your name?" });
  expect(Object.keys((await tasks.get(taskId)).inputRequests)).toEqual([name]);
  await tasks.update(taskId, { [name]: accept({ name: "Ada" }) });
  expect(await resultOf(taskId)).toEqual({ name: accept({ name: "Ada" }), sure: accept({ confirm: true }) });
});

test("two questions may be answered at once", async () => {
  const { taskId } = await tasks.call("multi_input", { name: "at once" });
  const { inputRequests } = await tasks.reaches(taskId, bothOpen);
  const [name = "", sure = ""] = Object.keys(inputRequests);
  await tasks.update(taskId, { [name]: accept({ name: "Ada" }), [sure]: { action: "decline" } });
  expect(await resultOf(taskId)).toEqual({ name: accept({ name: "Ada" }), sure: { action: "decline" } });
});

describe("an answer to no open question is ignored:", () => {
  test("1,000 unknown keys, without additional requests", async () => {
    const { taskId, key } = await asked("thousand");
    const cost = async (responses: object) => {
      const before = gate.calls.length;
      expect(await tasks.update(taskId, responses)).toMatchObject(acknowledged);
      return gate.calls.length - before;
    };
    const ofNone = await cost({});
    const unknown = Object.fromEntries(
      Array.from({ length: 1_000 }, (_, n) => [`q${n + 2}`, accept({ confirm: true })]),
    );
    expect(await cost(unknown)).toBe(ofNone);
    expect(ofNone).toBeLessThan(25); // the promise, its journal and the question
    expect((await tasks.get(taskId)).status).toBe("input_required");
    expect(await cost({ ...unknown, [key]: accept({ confirm: true }) })).toBe(ofNone + 1);
    expect(await resultOf(taskId)).toBe("deleted thousand");
  });

  test("unknown keys with values that would not fit any question", async () => {
    const { taskId } = await asked("misfit");
    const answers = { unknown: 7, "": null, constructor: {}, __proto__: accept({ confirm: true }) };
    expect(await tasks.update(taskId, answers)).toMatchObject(acknowledged);
    expect((await tasks.get(taskId)).status).toBe("input_required");
  });

  test("a second answer to a question, so the first one counts", async () => {
    const { taskId, key } = await asked("twice");
    await tasks.update(taskId, { [key]: { action: "decline" } });
    expect(await tasks.update(taskId, { [key]: accept({ confirm: true }) })).toMatchObject(acknowledged);
    expect(await tasks.update(taskId, { [key]: accept({ confirm: "misfit" }) })).toMatchObject(acknowledged);
    expect(await resultOf(taskId)).toBe("kept twice");
    expect(await tasks.update(taskId, { [key]: accept({ confirm: true }) })).toMatchObject(acknowledged);
    expect(await resultOf(taskId)).toBe("kept twice");
  });

  test("an answer to a cancelled task", async () => {
    const { taskId, key } = await asked("too-late");
    await tasks.cancel(taskId);
    expect(await tasks.update(taskId, { [key]: accept({ confirm: true }) })).toMatchObject(acknowledged);
    expect((await tasks.get(taskId)).status).toBe("cancelled");
  });

  test("any key for a task that asks nothing", async () => {
    const { taskId } = await tasks.call("timer", { timer_name: "asks nothing", seconds: 60 });
    expect(await tasks.update(taskId, { q1: accept({ confirm: true }) })).toMatchObject(acknowledged);
    expect((await tasks.get(taskId)).status).toBe("working");
  });
});

test("of many simultaneous answers one counts, and all are acknowledged", async () => {
  const { taskId, key } = await asked("contested");
  const answers = Array.from({ length: 8 }, (_, n) => (n % 2 ? accept({ confirm: true }) : { action: "decline" }));
  const acks = await Promise.all(answers.map((answer) => tasks.update(taskId, { [key]: answer })));
  for (const ack of acks) expect(ack).toMatchObject(acknowledged);
  const question = journalEntryId(`${stack.namespace}confirm_delete_contested`, 1);
  const counted = (await stack.resonate.get(question))?.value?.data as { action: string };
  expect(await resultOf(taskId)).toBe(counted.action === "accept" ? "deleted contested" : "kept contested");
});

test("an answer that the Resonate server takes without its reply arriving counts and is acknowledged", async () => {
  const { taskId, key } = await asked("unheard");
  const lost = gate.loseAnswer("promise.settle");
  const [acknowledgement] = await Promise.all([tasks.update(taskId, { [key]: accept({ confirm: true }) }), lost]);
  expect(acknowledgement).toMatchObject(acknowledged);
  expect(await resultOf(taskId)).toBe("deleted unheard");
});
