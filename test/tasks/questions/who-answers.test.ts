/** A job's question: which clients are asked, which are told of it, and who may answer. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../../testing/stack/program.ts";
import { currentClient, type McpClient } from "../../support/clients.ts";
import { rpc, TASKS } from "../../support/rpc.ts";
import type { Stack } from "../../support/stack.ts";
import { accept, startTaskStack, subscribe, tasksAt, type WireTask } from "../support.ts";

let stack: Stack;
/** A client that declares tasks and forms. */
let tasks: ReturnType<typeof tasksAt>;
/** A client that does not know tasks. */
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
/** Arguments of a range that belongs to one test and that the user has to confirm, and the job name. */
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

/** Sends a request as a client that declares tasks and the capabilities `declared`. */
async function as(declared: object, method: string, params: object) {
  const { result, error } = await rpc(stack.url, method, params, { capabilities: { ...TASKS, ...declared } });
  if (error) throw new Error(error.message);
  return result;
}

describe("the same task", () => {
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

  test.each(NO_FORMS)("is working for a client with %s, and says what it waits for", async (_what, declared) => {
    const seen = await as(declared, "tasks/get", { taskId: task.taskId });
    expect(seen.status).toBe("working");
    expect(seen).not.toHaveProperty("inputRequests");
    expect(seen.statusMessage).toMatch(/confirm_delete_seen waits for an answer .*Delete seen\?.*Only the user/);
    // An unknown capability makes the SDK answer the request.
    const { _meta, ...same } = await as({ ...declared, "com.example": {} }, "tasks/get", { taskId: task.taskId });
    expect(same).toMatchObject({ status: "working", statusMessage: seen.statusMessage });
  });

  test("is pushed to each client in the form that tasks/get has for it", async () => {
    await using asked = await subscribe(stack.url, [task.taskId]);
    await using told = await subscribe(stack.url, [task.taskId], undefined, TASKS);
    await asked.told(task.taskId, "input_required");
    const working = await told.told(task.taskId, "working");
    expect(working.statusMessage).toContain("Delete seen?");
  });
});

describe("a range that the user has to confirm", () => {
  test.each(NO_FORMS)(
    "is refused, with its job name, to a client with tasks and %s until it confirms in an argument",
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

  test("shows its open question to every client at once and in every tool", async () => {
    const { args, job } = ownRange();
    const { taskId } = await tasks.call("weather_range", args);
    await tasks.reaches(taskId, "input_required");
    const waiting = {
      question: "confirm",
      message: expect.stringContaining("26 requests"),
      answered_by: "user",
      until: expect.stringMatching(/Z$/),
    };
    // A call with progress waits for up to 45 seconds, but not for an answer that this client cannot give.
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

  test("goes on once one client confirms it in an argument while another is asked", async () => {
    const { args, job } = ownRange();
    const { taskId } = await tasks.call("weather_range", args);
    await tasks.reaches(taskId, "input_required");
    const { content } = await client.callTool("weather_range", { ...args, confirm: true });
    expect(content).toMatchObject({ job_name: job, status: "complete" });
    expect((await tasks.reaches(taskId, "completed")).status).toBe("completed");
  });

  test("needs no confirmation once it has been gathered", async () => {
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
  /** Starts a job with a question that anyone may answer. */
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
  ])("takes an answer to a question that anyone may answer: %s", async (what, given, result) => {
    const { taskId, job } = await asking(what.replaceAll(" ", "-"));
    const { content } = await client.callTool("probe_status", { job_names: job });
    expect(content.statuses[0].waiting_for).toMatchObject([
      { question: "colour", message: "Which colour?", answered_by: "anyone", answer_schema: { required: ["colour"] } },
    ]);
    expect((await as({}, "tasks/get", { taskId })).statusMessage).toMatch(/Which colour\?.*answer_question/);
    expect(await answer(job, "colour", given)).toEqual({ job_name: job, question: "colour", answered: true });
    expect(await resultOf(taskId)).toBe(result);
  });

  test("refuses an answer that only the user may give, that does not fit or that answers no question, which stays open", async () => {
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
    const formless = await asking("formless-strict");
    expect(await answer(formless.job, "colour", "yes")).toMatch(/answer: it is not JSON/);
    expect((await tasks.get(formless.taskId)).status).toBe("input_required");

    expect(await answer("open_question_nobody", "colour", {})).toMatch(/^Nothing was done: [\s\S]*names no job/);
    expect(await answer(open.job, "colour", { colour: "green" })).toMatchObject({ answered: true });
    expect(await resultOf(open.taskId)).toBe("green");
    expect(await answer(open.job, "colour", { colour: "late" })).toMatch(/^Nothing was done: .*asks nothing now/);
  });
});

test("the poll interval becomes short once a question is answered", async () => {
  const { taskId } = await tasks.call("multi_input", { name: "soon" });
  const [first] = Object.keys((await tasks.reaches(taskId, "input_required")).inputRequests);
  const before = await until("a long pause", async () => {
    const task = await tasks.get(taskId);
    return task.pollIntervalMs > 3_000 ? task : undefined;
  });
  await tasks.update(taskId, { [first as string]: accept({ name: "Ada" }) });
  expect((await tasks.get(taskId)).pollIntervalMs).toBeLessThan(before.pollIntervalMs / 2);
});

test("if arguments may not confirm, only a client that shows forms can start a long range", async () => {
  await using strict = await startTaskStack({ bindings: { CONFIRM_ARGUMENTS: "off", WAIT_SECONDS: "1" } });
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
