import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { feedEntryId, journalEntryId } from "../../core/resonate/ids.ts";
import { until } from "../../testing/stack/program.ts";
import { CLIENTS, type McpClient } from "../support/clients.ts";
import { monthsOfItsOwn } from "../support/months.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { type Stack, startStack } from "../support/stack.ts";

let resonate: Resonate;
let stack: Stack;
/** Another deployment on the same Resonate server, without workers. */
let neighbour: Stack;
beforeAll(async () => {
  resonate = await startResonate();
  stack = await startStack({ resonate });
  neighbour = await startStack({ resonate, workers: 0 });
});
afterAll(async () => {
  await neighbour?.[Symbol.asyncDispose]();
  await stack?.[Symbol.asyncDispose]();
  await resonate?.[Symbol.asyncDispose]();
});

const nextMonth = monthsOfItsOwn();
const encode = (value: unknown) => ({ data: Buffer.from(JSON.stringify(value)).toString("base64") });
const MONTH = { latitude: 1, longitude: 1, year: 2001, month: 1 };

/** Promises that others may have created on the server, under ids that look like this deployment's. */
const FOREIGN: [what: string, name: string, param: object][] = [
  ["a promise without a function", "timer_none", {}],
  ["a promise of another function", "timer_other", encode({ func: "reboot", args: [], version: 1 })],
  ["a gathering under a timer's name", "timer_month", encode({ func: "weather_data", args: [MONTH], version: 1 })],
  [
    "a timer under a gathering's name",
    "weather_data_1_1_2001_1",
    encode({ func: "timer", args: [{ timer_name: "x", fires_at: "2030-01-01T00:00:00.000Z" }], version: 1 }),
  ],
  ["a promise whose parameter is a string", "timer_text", encode("timer")],
  ["a promise whose parameter is null", "timer_null", encode(null)],
];

describe.each(CLIENTS)("a name that is no job of this deployment, asked for by $kind:", ({ kind, connect }) => {
  let client: McpClient;
  beforeAll(async () => {
    client = await connect(stack.url);
  });
  afterAll(() => client?.close());

  const call = async (name: string, args: object) => (await client.callTool(name, args)).content;

  /** Expects that no tool finds these names. */
  async function expectNotFound(names: string[]) {
    const { statuses } = await call("probe_status", { job_names: names });
    expect(statuses).toEqual(
      names.map((job_name) => ({ job_name, status: "not_found", error: expect.stringContaining("No job") })),
    );
    // No `timeout_seconds`: the call must not wait for a name that cannot become a job.
    const awaited = await call("await_result", { job_names: names });
    expect([Object.keys(awaited.errors).sort(), awaited.results, awaited.running]).toEqual([names.toSorted(), {}, []]);
    const cancelled = await call("cancel_job", { job_names: names });
    expect(cancelled).toEqual({ cancelled: [], already_finished: [], not_found: names });
  }

  /** Expects that no tool finds these names, and that the promises under them stay unchanged. */
  async function expectUnreachable(names: string[], namespace = stack.namespace) {
    const read = () =>
      Promise.all(names.map(async (name) => (await resonate.call("promise.get", { id: namespace + name })).data));
    const before = await read();
    await expectNotFound(names);
    expect(await read()).toEqual(before);
  }

  test.each(FOREIGN)("%s is not found, and a start under its name is refused", async (_what, name, param) => {
    const id = stack.namespace + name;
    await resonate.call("promise.create", {
      id,
      timeoutAt: Date.now() + 60_000,
      param,
      tags: { "resonate:scope": "global" },
    });
    await expectUnreachable([name]);
    const start = name.startsWith("timer_")
      ? client.callTool("set_timer", { timer_name: name.slice("timer_".length), seconds: 5 })
      : client.callTool("start_gathering", MONTH);
    const { isError, text } = await start;
    expect([isError, text]).toEqual([true, expect.stringMatching(`^Nothing was done: .*${name} is taken `)]);
    if (name.startsWith("timer_")) {
      const timer_name = name.slice("timer_".length);
      expect(await call("get_timer_status", { timer_name })).toEqual({ timer_name, status: "not_found" });
    }
    const { data } = await resonate.call("promise.get", { id });
    expect(data).toMatchObject({ promise: { state: "pending", tags: { "resonate:scope": "global" } } });
  });

  test("a promise whose parameter cannot be decoded is seen, keeps its name, and can be cancelled and forgotten", async () => {
    const [timer_name, job_name] = [`opaque ${kind}`, `timer_opaque ${kind}`];
    const id = stack.namespace + job_name;
    const timeoutAt = Date.now() + 60_000;
    await resonate.call("promise.create", {
      id,
      timeoutAt,
      param: { data: "%%%" },
      tags: { "resonate:scope": "global" },
    });
    const status = async () => (await call("probe_status", { job_names: job_name })).statuses[0].status;
    expect(await status()).toBe("running");
    for (const [tool, more] of [
      ["set_timer", { seconds: 5 }],
      ["get_timer_status", {}],
    ] as const) {
      const { isError, text } = await client.callTool(tool, { timer_name, ...more });
      expect([isError, text]).toEqual([true, expect.stringMatching(`^Nothing was done: .*${job_name} is taken `)]);
    }
    expect(await call("await_result", { job_names: job_name, timeout_seconds: 1 })).toMatchObject({
      running: [job_name],
    });
    expect(await call("cancel_job", { job_names: job_name })).toMatchObject({ cancelled: [job_name] });
    expect(await status()).toBe("cancelled");
    // A standalone server removes nothing.
    const { forgotten, hidden = [] } = await call("forget_jobs", { job_names: job_name });
    expect([...forgotten, ...hidden]).toEqual([job_name]);
  });

  test("an id that no job could have", async () => {
    const names = [
      "order-17",
      "timer",
      "timer_",
      "weather_data_",
      "weather_data_x_y_2013_5",
      "weather_data_1_1_2013",
      "TIMER_none",
    ];
    for (const name of names) {
      const param = encode({
        func: "timer",
        args: [{ timer_name: "x", fires_at: "2030-01-01T00:00:00.000Z" }],
        version: 1,
      });
      const data = {
        id: stack.namespace + name,
        timeoutAt: Date.now() + 60_000,
        param,
        tags: { "resonate:scope": "global" },
      };
      await resonate.call("promise.create", data);
    }
    await expectUnreachable(names);
  });

  test("a name that no timer can have", async () => {
    await expectNotFound(["timer_a\nb", "timer_\u0000", "timer_\ud83d", `timer_${"x".repeat(101)}`]);
  });

  test("a promise inside a job", async () => {
    const timer_name = `inside ${kind}`;
    const { promise_id } = await call("set_timer", { timer_name, seconds: 3_600 });
    const child = await until("the timer to sleep on a promise of its own", async () => {
      const id = journalEntryId(promise_id, 1);
      return (await resonate.get(stack.namespace + id)) ? id : undefined;
    });
    await expectUnreachable([child, `${child}.1`, feedEntryId(promise_id, 1)]);
    await expectUnreachable([
      `${promise_id}~1`,
      `${promise_id}~2`,
      `${promise_id}~02`,
      `${promise_id}~`,
      `${promise_id}~2~2`,
    ]);
    expect(await call("get_timer_status", { timer_name })).toMatchObject({ status: "running" });
  });

  test("a later generation of a job that has failed", async () => {
    const timer_name = `later ${kind}`;
    const { promise_id } = await call("set_timer", { timer_name, seconds: 3_600 });
    await call("cancel_job", { job_names: promise_id });
    const id = `${stack.namespace}${promise_id}~2`;
    await resonate.call("promise.create", { id, timeoutAt: Date.now() + 60_000, param: {}, tags: {} });
    const { isError, text } = await client.callTool("set_timer", { timer_name, seconds: 5 });
    expect([isError, text]).toEqual([true, expect.stringContaining(`${promise_id}~2 is taken`)]);
    await expectUnreachable([`${promise_id}~2`]);
  });

  test("a job of another deployment on the same server, while both have a job of the same name", async () => {
    await using other = await connect(neighbour.url);
    const { args, job } = nextMonth();
    const timer_name = `shared ${kind}`;
    await other.callTool("start_gathering", args);
    const theirs = (await other.callTool("set_timer", { timer_name, seconds: 3_600 })).content;
    await expectUnreachable([job, theirs.promise_id], neighbour.namespace);
    await expectUnreachable(
      [job, theirs.promise_id].map((name) => neighbour.namespace + name),
      "",
    );

    const ours = await call("set_timer", { timer_name, seconds: 1 });
    expect(ours).toMatchObject({ promise_id: theirs.promise_id, status: "running" });
    expect(ours).not.toHaveProperty("note");
    const { results } = await call("await_result", { job_names: ours.promise_id });
    expect(results).toEqual({ [ours.promise_id]: "complete" });
    expect((await other.callTool("get_timer_status", { timer_name })).content).toMatchObject({
      status: "running",
      fires_at: theirs.fires_at,
    });
    expect(await call("weather_data", args)).toMatchObject({ job_name: job, status: "complete" });
    expect((await other.callTool("probe_status", { job_names: job })).content.statuses).toMatchObject([
      { job_name: job, status: "running" },
    ]);
  });
});
