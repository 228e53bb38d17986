/** A job's question: who is asked it, who is told of it, and who may answer. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../../testing/simulation/program.ts";
import { currentClient, type McpClient } from "../../support/clients.ts";
import { rpc, TASKS } from "../../support/rpc.ts";
import type { Stack } from "../../support/stack.ts";
import { accept, startTaskStack, subscribe, tasksAt, type WireTask } from "../support.ts";

let stack: Stack;
/** Declares tasks and forms. */
let tasks: ReturnType<typeof tasksAt>;
/** Knows nothing of tasks. */
let client: McpClient;
beforeAll(async () => {
  stack = await startTaskStack();
  tasks = tasksAt(stack.url);
  client = await currentClient.connect(stack.url);
});
afterAll(async () => {
  await client?.close();
  await stack?.[Symbol.asyncDispose]();
});

const LONG = { latitude: 47.6, from: "2012-01", to: "2014-02" };
let places = 0;
/** A range of a test's own that the user has to agree to, and its job's name. */
function ownRange() {
  const args = { ...LONG, longitude: -122 - ++places / 100 };
  return { args, job: `weather_range_47.6_${args.longitude}_2012-01_2014-02` };
}

const FORMS: [string, object][] = [
  ["elicitation", { elicitation: {} }],
  ["elicitation of forms", { elicitation: { form: {} } }],
  ["elicitation of forms and URLs", { elicitation: { form: {}, url: {} } }],
];
const NO_FORMS: [string, object][] = [
  ["no elicitation", {}],
  ["elicitation of URLs alone", { elicitation: { url: {} } }],
];

/** A request of a client that declares tasks, and what else it can. */
async function as(declared: object, method: string, params: object) {
  const { result, error } = await rpc(stack.url, method, params, { capabilities: { ...TASKS, ...declared } });
  if (error) throw new Error(error.message);
  return result;
}

describe("one and the same task", () => {
  let task: WireTask;
  beforeAll(async () => {
    const { taskId } = await tasks.call("confirm_delete", { filename: "seen" });
    task = await tasks.reaches(taskId, "input_required");
  });

  test.each(FORMS)("asks a client that declares %s", async (_what, declared) => {
    const seen = await as(declared, "tasks/get", { taskId: task.taskId });
    expect(seen).toMatchObject({ status: "input_required", inputRequests: task.inputRequests });
    expect(JSON.stringify(seen)).not.toContain("answeredBy");
  });

  test.each(NO_FORMS)("works, to one that declares %s, and says what it waits for", async (_what, declared) => {
    const seen = await as(declared, "tasks/get", { taskId: task.taskId });
    expect(seen.status).toBe("working");
    expect(seen).not.toHaveProperty("inputRequests");
    expect(seen.statusMessage).toMatch(/confirm_delete_seen waits for an answer .*Delete seen\?.*Only the user/);
    // With something in the request that makes it the SDK's to answer.
    const { _meta, ...same } = await as({ ...declared, "com.example": {} }, "tasks/get", { taskId: task.taskId });
    expect(same).toMatchObject({ status: "working", statusMessage: seen.statusMessage });
  });

  test("is pushed to each as it is told to it", async () => {
    await using asked = await subscribe(stack.url, [task.taskId]);
    await using told = await subscribe(stack.url, [task.taskId], undefined, TASKS);
    await asked.told(task.taskId, "input_required");
    const working = await told.told(task.taskId, "working");
    expect(working.statusMessage).toContain("Delete seen?");
  });
});

describe("a range that the user has to agree to", () => {
  test.each(NO_FORMS)(
    "is refused by its name to a client with tasks and %s, which may confirm",
    async (_what, declared) => {
      const { args, job } = ownRange();
      const call = { name: "weather_range", arguments: args };
      const refused = await as(declared, "tools/call", call);
      expect(refused).toMatchObject({ isError: true });
      expect(refused.content[0].text).toMatch(new RegExp(`^Nothing was done: ${job} takes 26 requests.*confirm: true`));
      expect(await stack.resonate.get(stack.namespace + job)).toBeUndefined();
      const confirmed = { name: "weather_range", arguments: { ...args, confirm: true } };
      expect(await as(declared, "tools/call", confirmed)).toMatchObject({ resultType: "task" });
    },
  );

  test("that somebody is asked about already is told of to everybody, at once and by every tool", async () => {
    const { args, job } = ownRange();
    const { taskId } = await tasks.call("weather_range", args);
    await tasks.reaches(taskId, "input_required");
    const waiting = {
      question: "confirm",
      message: expect.stringContaining("26 requests"),
      answered_by: "user",
      until: expect.stringMatching(/Z$/),
    };
    // A call that is told of progress waits for 45 seconds, but not for an answer that cannot come of it.
    const { content, isError } = await client.callTool("weather_range", args, { onprogress: () => {} });
    expect(isError).toBe(false);
    expect(content).toMatchObject({ job_name: job, status: "running", waiting_for: [waiting] });
    expect(content.note).toMatch(/Only the user.*call weather_range again with confirm: true/);

    const probed = await client.callTool("probe_status", { job_names: job });
    expect(probed.content.statuses).toMatchObject([{ status: "running", waiting_for: [waiting] }]);
    const awaited = await client.callTool("await_result", { job_names: job, timeout_seconds: 1 });
    expect(awaited.content).toMatchObject({ running: [job], waiting_for: { [job]: [waiting] } });
    const list = await client.callTool("list_jobs", { kind: "weather_range", status: "running", limit: 1 });
    expect(list.content.jobs).toMatchObject([{ job_name: job, status: "running", waiting_for: [waiting] }]);

    await tasks.update(taskId, { confirm: { action: "decline" } });
    await tasks.reaches(taskId, "completed");
    const after = await client.callTool("probe_status", { job_names: job });
    expect(after.content.statuses[0]).not.toHaveProperty("waiting_for");
  });

  test("and is asked about in another client is gathered once it is confirmed by an argument", async () => {
    const { args, job } = ownRange();
    const { taskId } = await tasks.call("weather_range", args);
    await tasks.reaches(taskId, "input_required");
    const { content } = await client.callTool("weather_range", { ...args, confirm: true });
    expect(content).toMatchObject({ job_name: job, status: "complete" });
    expect((await tasks.reaches(taskId, "completed")).status).toBe("completed");
  });

  test("and is gathered already needs nobody's word any more", async () => {
    const { args, job } = ownRange();
    await client.callTool("weather_range", { ...args, confirm: true });
    expect((await client.callTool("weather_range", args)).content).toMatchObject({ job_name: job, status: "complete" });
  });
});

describe("answer_question", () => {
  const answer = async (job_name: string, question: string, answer: unknown) => {
    const { isError, content, text } = await client.callTool("answer_question", { job_name, question, answer });
    return isError ? text : content;
  };
  /** A job that asks what anybody may answer. */
  async function asking(name: string) {
    const { taskId } = await tasks.call("open_question", { name });
    const job = `open_question_${name}`;
    const seen = await tasks.reaches(taskId, "input_required");
    expect(JSON.stringify(seen)).not.toContain("answeredBy");
    return { taskId, job };
  }
  const resultOf = async (taskId: string) => (await tasks.reaches(taskId, "completed")).result.structuredContent.result;

  test.each([
    ["as JSON", '{"colour": "red"}', "red"],
    ["as an object", { colour: "blue" }, "blue"],
    ["to decline", "null", "decline"],
  ])("takes an answer where anyone may give it: %s", async (what, given, result) => {
    const { taskId, job } = await asking(what.replaceAll(" ", "-"));
    const { content } = await client.callTool("probe_status", { job_names: job });
    expect(content.statuses[0].waiting_for).toMatchObject([
      { question: "colour", message: "Which colour?", answered_by: "anyone", answer_schema: { required: ["colour"] } },
    ]);
    expect((await as({}, "tasks/get", { taskId })).statusMessage).toMatch(/Which colour\?.*answer_question/);
    expect(await answer(job, "colour", given)).toEqual({ job_name: job, question: "colour", answered: true });
    expect(await resultOf(taskId)).toBe(result);
  });

  test("refuses what is asked of the user, what does not fit, and what is not asked; the question stays open", async () => {
    const { taskId } = await tasks.call("confirm_delete", { filename: "guarded" });
    await tasks.reaches(taskId, "input_required");
    expect(await answer("confirm_delete_guarded", "confirm", { confirm: true })).toMatch(
      /^Nothing was done: only the user may answer "Delete guarded\?"/,
    );
    expect((await tasks.get(taskId)).status).toBe("input_required");

    const open = await asking("strict");
    for (const [question, given, words] of [
      [
        "colour",
        { colour: 5 },
        /answer_question does not accept.*\nanswer: .*Accepted: JSON that fits \{"type":"object"/,
      ],
      ["colour", "red", /answer: it is not JSON/],
      ["color", { colour: "red" }, /question: "color" is not open. Accepted: colour/],
    ] as const) {
      const refused = await answer(open.job, question, given);
      expect(refused).toMatch(/^Nothing was done: /);
      expect(refused).toMatch(words);
    }
    expect(await answer("open_question_nobody", "colour", {})).toMatch(/^Nothing was done: [\s\S]*names no job/);
    expect(await answer(open.job, "colour", { colour: "green" })).toMatchObject({ answered: true });
    expect(await resultOf(open.taskId)).toBe("green");
    expect(await answer(open.job, "colour", { colour: "late" })).toMatch(/^Nothing was done: .*asks nothing now/);
  });
});

test("once a question is answered, it is worth asking again soon", async () => {
  const { taskId } = await tasks.call("multi_input", { name: "soon" });
  const [first] = Object.keys((await tasks.reaches(taskId, "input_required")).inputRequests);
  const before = await until("a long pause", async () => {
    const task = await tasks.get(taskId);
    return task.pollIntervalMs > 3_000 ? task : undefined;
  });
  await tasks.update(taskId, { [first as string]: accept({ name: "Ada" }) });
  expect((await tasks.get(taskId)).pollIntervalMs).toBeLessThan(before.pollIntervalMs / 2);
});

test("where no argument may confirm, only a client that shows forms can have a long range", async () => {
  await using strict = await startTaskStack({ bindings: { CONFIRM_ARGUMENTS: "off" } });
  await using other = await currentClient.connect(strict.url);
  const range = (await other.listTools()).find(({ name }) => name === "weather_range");
  expect(JSON.stringify(range)).not.toContain("confirm");
  const { args } = ownRange();
  const { isError, text } = await other.callTool("weather_range", { ...args, confirm: true });
  expect([isError, text]).toEqual([true, expect.stringMatching(/^Nothing was done: .*up to 24 months at a time/)]);
  const { taskId } = await tasksAt(strict.url).call("weather_range", { ...args, confirm: true });
  await tasksAt(strict.url).reaches(taskId, "input_required");
  const { content } = await other.callTool("weather_range", args);
  expect(content.note).toContain("Only the user");
  expect(content.note).not.toContain("confirm: true");
});
