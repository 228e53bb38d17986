import { AjvJsonSchemaValidator } from "@modelcontextprotocol/client/validators/ajv";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { CLIENTS, type McpClient } from "../support/clients.ts";
import { monthsOfItsOwn, servedBody } from "../support/months.ts";
import { type Stack, startStack } from "../support/stack.ts";

vi.setConfig({ maxConcurrency: 20 });

let stack: Stack;
beforeAll(async () => {
  stack = await startStack();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const nextMonth = monthsOfItsOwn();

const reads = { readOnlyHint: true, idempotentHint: true, openWorldHint: false };
/** Tools that only gather or wait change nothing: hosts call them without asking the user, and several in parallel. */
const starts = { readOnlyHint: true, destructiveHint: false, idempotentHint: true };
const TOOLS = {
  start_gathering: [["latitude", "longitude", "year", "month"], ["timezone"], { ...starts, openWorldHint: true }],
  probe_status: [["job_names"], ["result", "fields", "offset", "limit", "partial_from"], reads],
  await_result: [["job_names"], ["timeout_seconds", "partial_from"], reads],
  cancel_job: [["job_names"], [], { readOnlyHint: false, destructiveHint: true, idempotentHint: true }],
  set_timer: [["timer_name", "seconds"], [], { ...starts, openWorldHint: false }],
  get_timer_status: [["timer_name"], [], reads],
  weather_data: [["latitude", "longitude", "year", "month"], ["timezone"], { ...starts, openWorldHint: true }],
  timer: [["timer_name", "seconds"], [], { ...starts, openWorldHint: false }],
} as const;

describe.concurrent.each(CLIENTS)("$kind", ({ kind, connect }) => {
  let client: McpClient;
  beforeAll(async () => {
    client = await connect(stack.url);
  });
  afterAll(() => client?.close());

  test("agrees on its revision with a server that introduces itself", () => {
    expect(client.revision).toMatch(kind === "the current client" ? "2026-07-28" : /^2025-/);
    expect(client.serverInfo).toMatchObject({ name: "durable-mcp-edge", version: packageJson.version });
    for (const tool of ["start_gathering", "set_timer", "probe_status", "await_result", "list_jobs"]) {
      expect(client.instructions).toContain(tool);
    }
  });

  test("is shown each tool with everything that a model needs to choose and call it", async () => {
    const tools = new Map((await client.listTools()).map((tool) => [tool.name, tool]));
    // Directories list a server only if each of its tools has all of these annotations.
    const hint = expect.any(Boolean);
    for (const { annotations } of tools.values()) {
      expect(annotations).toEqual({
        title: expect.stringMatching(/^[A-Z]/),
        readOnlyHint: hint,
        destructiveHint: hint,
        idempotentHint: hint,
        openWorldHint: hint,
      });
    }
    for (const [name, [required, optional, annotations]] of Object.entries(TOOLS)) {
      const { title, description, inputSchema, outputSchema, ...listed } = tools.get(name) ?? expect.fail(name);
      expect([title, listed.annotations]).toEqual([
        expect.stringMatching(/^[A-Z]/),
        expect.objectContaining(annotations),
      ]);
      expect(description?.length).toBeGreaterThan(60);
      const { properties, ...input } = inputSchema as { properties: Record<string, object> };
      expect(input).toMatchObject({ type: "object", required });
      expect(Object.keys(properties)).toEqual([...required, ...optional]);
      expect(outputSchema).toMatchObject({ type: "object", required: expect.any(Array) });
    }
  });

  test("gathers a month: starts it, awaits it, probes it, and gets byte for byte what the archive served", async () => {
    const month = nextMonth();
    const { job } = month;
    expect(await call("start_gathering", month.args)).toEqual({
      job_name: job,
      status: "running",
      collect_with: ["await_result", "probe_status"],
    });
    const { results, errors, running } = await call("await_result", { job_names: [job] });
    expect([Object.keys(results), errors, running]).toEqual([[job], {}, []]);
    const { statuses } = await call("probe_status", { job_names: [job] });
    expect(statuses).toEqual([
      { job_name: job, status: "complete", result: results[job], started_at: isInstant, finished_at: isInstant },
    ]);
    expect(statuses[0].finished_at >= statuses[0].started_at).toBe(true);
    expect(stack.archive.control.count(month.archived)).toBe(1);
    expect(JSON.stringify(results[job])).toBe(await servedBody(stack.archive, month));
    expect(await call("start_gathering", month.args)).toEqual({ job_name: job, status: "complete" });
  });

  test("gathers a month by the days of a time zone as a different job", async () => {
    const month = nextMonth();
    const { job_name } = await call("start_gathering", { ...month.args, timezone: "asia/tokyo" });
    expect(job_name).toBe(`${month.job}_Asia/Tokyo`);
    const { results } = await call("await_result", { job_names: [job_name] });
    expect(results[job_name]).toMatchObject({ timezone: "Asia/Tokyo", utc_offset_seconds: 32_400 });
    expect(JSON.stringify(results[job_name])).toBe(await servedBody(stack.archive, month));
  });

  test("gets a month in one call", async () => {
    const month = nextMonth();
    const view = await call("weather_data", month.args);
    expect(view).toMatchObject({ job_name: month.job, status: "complete" });
    expect(JSON.stringify(view.result)).toBe(await servedBody(stack.archive, month));
    expect((await call("probe_status", { job_names: [month.job] })).statuses).toEqual([view]);
  });

  test("sets a timer, sees it run, and learns when it has fired", async () => {
    const timer_name = `tea of ${kind}`;
    const before = Date.now();
    const { fires_at, ...set } = await call("set_timer", { timer_name, seconds: 3_600 });
    const after = Date.now();
    const job_name = `timer_${timer_name}`;
    expect(set).toEqual({
      job_name,
      promise_id: job_name,
      timer_name,
      status: "running",
      collect_with: ["await_result", "probe_status"],
    });
    expect(Date.parse(fires_at)).toBeGreaterThanOrEqual(before + 3_600_000);
    expect(Date.parse(fires_at)).toBeLessThanOrEqual(after + 3_600_000);
    const secondsLeft = () => Math.ceil((Date.parse(fires_at) - Date.now()) / 1_000);
    const most = secondsLeft();
    const { remaining_seconds, ...status } = await call("get_timer_status", { timer_name });
    expect(status).toEqual({ timer_name, status: "running", fires_at });
    expect(remaining_seconds).toBeLessThanOrEqual(most);
    expect(remaining_seconds).toBeGreaterThanOrEqual(secondsLeft());
    const short = `short ${timer_name}`;
    const { promise_id, fires_at: due } = await call("set_timer", { timer_name: short, seconds: 1 });
    const { results } = await call("await_result", { job_names: [promise_id] });
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(due));
    expect(results).toEqual({ [promise_id]: "complete" });
    const fired = await call("get_timer_status", { timer_name: short });
    expect(fired).toEqual({ timer_name: short, status: "complete", fires_at: due, remaining_seconds: 0 });
  });

  test("waits for a timer in one call", async () => {
    const job_name = `timer_egg of ${kind}`;
    const before = Date.now();
    const view = await call("timer", { timer_name: `egg of ${kind}`, seconds: 1 });
    expect(view).toMatchObject({ job_name, status: "complete", result: "complete" });
    expect(Date.parse(view.finished_at)).toBeGreaterThanOrEqual(before + 1_000);
  });

  test("asks for several jobs together, and gets each name once, in the order of its first mention", async () => {
    const month = nextMonth();
    const long = `timer_long of ${kind}`;
    await call("set_timer", { timer_name: `long of ${kind}`, seconds: 3_600 });
    await call("weather_data", month.args);
    const names = [long, "timer_unheard of", month.job, "__proto__", long];
    const { results, errors, running } = await call("await_result", { job_names: names, timeout_seconds: 1 });
    expect(running).toEqual([long]);
    expect(Object.keys(results)).toEqual([month.job]);
    expect(Object.entries(errors).sort().reverse()).toEqual(
      ["timer_unheard of", "__proto__"].map((name) => [name, expect.stringMatching(/^not_found: /)]),
    );
    const { statuses } = await call("probe_status", { job_names: names });
    expect(statuses.map(({ job_name, status }: { job_name: string; status: string }) => [job_name, status])).toEqual([
      [long, "running"],
      ["timer_unheard of", "not_found"],
      [month.job, "complete"],
      ["__proto__", "not_found"],
    ]);
    const outcome = await call("cancel_job", { job_names: names });
    expect(outcome).toEqual({
      cancelled: [long],
      already_finished: [month.job],
      not_found: ["timer_unheard of", "__proto__"],
    });
    expect((await call("probe_status", { job_names: long })).statuses).toMatchObject([
      { status: "cancelled", error: expect.stringContaining("cancelled") },
    ]);
  });

  /** Calls a tool that must succeed, and checks its answer against its output schema. */
  async function call(name: string, args: object) {
    const { isError, content, text } = await client.callTool(name, args);
    if (isError) throw new Error(text);
    const tool = (await client.listTools()).find((listed) => listed.name === name);
    expect(ajv.getValidator(tool?.outputSchema as never)(content)).toMatchObject({ valid: true });
    return content;
  }
});

const ajv = new AjvJsonSchemaValidator();
const isInstant = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
