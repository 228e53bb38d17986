import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CLIENTS, type McpClient } from "../support/clients.ts";
import type { Gate } from "../support/gate.ts";
import { type GatedStack, startGatedStack } from "../support/stack.ts";

let gate: Gate;
let stack: GatedStack;
beforeAll(async () => {
  stack = await startGatedStack();
  gate = stack.gate;
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const MONTH = { latitude: 47.6, longitude: -122.3, year: 2013, month: 5 };
const JOB = "weather_data_47.6_-122.3_2013_5";
const RANGE = { latitude: 47.6, longitude: -122.3, from: "2013-05", to: "2013-06" };

/** The shapes in which clients may send a list of the two names. */
const LISTS: [string, unknown][] = [
  ["a list", [JOB, "timer_1"]],
  ["a JSON-encoded list", `["${JOB}", "timer_1"]`],
  ["a JSON-encoded list, indented", JSON.stringify([JOB, "timer_1"], undefined, 2)],
  ["a list of objects", [{ job_name: JOB }, { promise_id: "timer_1" }]],
  ["a JSON-encoded list of objects", JSON.stringify([{ job_name: JOB }, { job_name: "timer_1" }])],
  ["a list of both, with repetitions", [{ job_name: JOB }, "timer_1", JOB, { job_name: "timer_1" }]],
  ["the arguments within themselves", { job_names: [JOB, "timer_1"] }],
  ["the same as JSON", JSON.stringify({ job_names: [JOB, "timer_1"] })],
];

/** The shapes in which clients may send one name. */
const ONE: [string, unknown][] = [
  ["a bare name", JOB],
  ["a bare name with spaces around", ` ${JOB}\n`],
  ["a JSON-encoded name", JSON.stringify(JOB)],
  ["an object", { job_name: JOB }],
  ["a JSON-encoded object", JSON.stringify({ job_name: JOB })],
  ["a list of one", [JOB]],
];

describe.each(CLIENTS)("arguments as $kind may send them", ({ connect }) => {
  let client: McpClient;
  beforeAll(async () => {
    client = await connect(stack.url);
    await client.callTool("weather_data", MONTH);
    await client.callTool("set_timer", { timer_name: "1", seconds: 3_600 });
  });
  afterAll(() => client?.close());

  const call = async (name: string, args: object) => {
    const { isError, content, text } = await client.callTool(name, args);
    if (isError) throw new Error(text);
    return content;
  };

  test.each(LISTS)("job names: %s", async (_shape, job_names) => {
    const { statuses } = await call("probe_status", { job_names });
    expect(statuses).toMatchObject([
      { job_name: JOB, status: "complete" },
      { job_name: "timer_1", status: "running" },
    ]);
  });

  test.each(ONE)("job names: %s", async (_shape, job_names) => {
    const { statuses } = await call("probe_status", { job_names });
    expect(statuses).toMatchObject([{ job_name: JOB, status: "complete" }]);
    const { results } = await call("await_result", { job_names, timeout_seconds: "30" });
    expect(Object.keys(results)).toEqual([JOB]);
    expect(await call("cancel_job", { job_names })).toMatchObject({ already_finished: [JOB] });
  });

  test("job names: await_result and cancel_job take every shape of a list", async () => {
    const awaited = LISTS.map(([, job_names]) => call("await_result", { job_names, timeout_seconds: "1" }));
    for (const { results, running } of await Promise.all(awaited)) {
      expect([Object.keys(results), running]).toEqual([[JOB], ["timer_1"]]);
    }
    for (const [, job_names] of LISTS) {
      await call("set_timer", { timer_name: "1", seconds: 3_600 });
      const names = JSON.stringify(job_names).replaceAll("timer_1", "timer_unheard of");
      const outcome = await call("cancel_job", { job_names: JSON.parse(names) });
      expect(outcome).toEqual({ cancelled: [], already_finished: [JOB], not_found: ["timer_unheard of"] });
    }
  });

  test.each([[undefined], [null], [""], [45], ["45"], [" 4.5e1 "], [300]])(
    "timeout_seconds: %j",
    async (timeout_seconds) => {
      const { results } = await call("await_result", { job_names: JOB, timeout_seconds });
      expect(Object.keys(results)).toEqual([JOB]);
    },
  );

  test.each(["start_gathering", "weather_data"])("%s: numbers as strings, and explicit defaults", async (tool) => {
    for (const args of [
      { latitude: "47.60", longitude: "-122.3", year: "2013", month: "05" },
      { ...MONTH, timezone: null },
      { ...MONTH, timezone: "" },
      { ...MONTH, timezone: "auto" },
      { ...MONTH, timezone: " AUTO " },
      { ...MONTH, reason: "an argument that nobody asked for" },
    ]) {
      expect(await call(tool, args)).toMatchObject({ job_name: JOB, status: "complete" });
    }
    for (const timezone of ["Europe/Berlin", "europe/berlin", " Europe/Berlin "]) {
      expect(await call(tool, { ...MONTH, timezone })).toMatchObject({ job_name: `${JOB}_Europe/Berlin` });
    }
  });

  test("a timer's name: a string, a number, an object; seconds as a string", async () => {
    for (const timer_name of ["1", 1, " 1 ", { timer_name: "1" }, { timer_name: 1 }]) {
      const { fires_at, ...set } = await call("set_timer", { timer_name, seconds: "3600" });
      expect(set).toMatchObject({ promise_id: "timer_1", timer_name: "1", status: "running" });
      const status = await call("get_timer_status", { timer_name });
      expect(status).toMatchObject({ timer_name: "1", status: "running", fires_at });
    }
    const egg = await call("timer", { timer_name: { timer_name: "egg" }, seconds: "1" });
    expect(egg).toMatchObject({ job_name: "timer_egg", status: "complete" });
  });

  test("a range: numbers and the confirmation as strings", async () => {
    for (const confirm of [undefined, null, "", true, "true", "False"]) {
      const args = { ...RANGE, latitude: "47.60", longitude: "-122.30", confirm };
      expect(await call("weather_range", args)).toMatchObject({
        job_name: "weather_range_47.6_-122.3_2013-05_2013-06",
        status: "complete",
      });
    }
  });
});

/** A tool, wrong arguments, and what the error must name: the field, the value, and the values that are accepted. */
const BAD: [tool: string, args: object, field: string, got: string, accepted: string][] = [
  ...["start_gathering", "weather_data"].flatMap((tool): typeof BAD => [
    [tool, { ...MONTH, latitude: undefined }, "latitude", "is missing", "from -90 to 90"],
    [tool, { ...MONTH, latitude: 90.5 }, "latitude", "got 90.5", "from -90 to 90"],
    [tool, { ...MONTH, latitude: "north" }, "latitude", 'got "north"', "from -90 to 90"],
    [tool, { ...MONTH, latitude: "" }, "latitude", 'got ""', "from -90 to 90"],
    [tool, { ...MONTH, latitude: null }, "latitude", "got null", "from -90 to 90"],
    [tool, { ...MONTH, latitude: true }, "latitude", "got true", "from -90 to 90"],
    [tool, { ...MONTH, latitude: "Infinity" }, "latitude", 'got "Infinity"', "from -90 to 90"],
    [tool, { ...MONTH, latitude: [47.6] }, "latitude", "got [47.6]", "from -90 to 90"],
    [tool, { ...MONTH, longitude: -180.1 }, "longitude", "got -180.1", "from -180 to 180"],
    [tool, { ...MONTH, longitude: "122°W" }, "longitude", 'got "122°W"', "from -180 to 180"],
    [tool, { ...MONTH, year: 1939 }, "year", "got 1939", "from 1940"],
    [tool, { ...MONTH, year: 2013.5 }, "year", "got 2013.5", "from 1940"],
    [tool, { ...MONTH, year: "last" }, "year", 'got "last"', "from 1940"],
    [tool, { ...MONTH, month: 0 }, "month", "got 0", "from 1 to 12"],
    [tool, { ...MONTH, month: 13 }, "month", "got 13", "from 1 to 12"],
    [tool, { ...MONTH, month: "May" }, "month", 'got "May"', "from 1 to 12"],
    [tool, { ...MONTH, month: 1.5 }, "month", "got 1.5", "from 1 to 12"],
    [tool, { ...MONTH, timezone: "Mars/Olympus" }, "timezone", 'got "Mars/Olympus"', "IANA"],
    [tool, { ...MONTH, timezone: "+05:00" }, "timezone", 'got "+05:00"', "IANA"],
    [tool, { ...MONTH, timezone: 5 }, "timezone", "got 5", "IANA"],
    [tool, { ...MONTH, year: 9999, month: 12 }, "month", "9999-12 has not begun", "up to the present one"],
  ]),
  ...["set_timer", "timer"].flatMap((tool): typeof BAD => [
    [tool, { timer_name: "tea" }, "seconds", "is missing", "from 1 to 31536000"],
    [tool, { timer_name: "tea", seconds: 0 }, "seconds", "got 0", "from 1 to 31536000"],
    [tool, { timer_name: "tea", seconds: -5 }, "seconds", "got -5", "from 1 to 31536000"],
    [tool, { timer_name: "tea", seconds: 315_360_000 }, "seconds", "got 315360000", "from 1 to 31536000"],
    [tool, { timer_name: "tea", seconds: "abc" }, "seconds", 'got "abc"', "from 1 to 31536000"],
    [tool, { timer_name: "tea", seconds: "NaN" }, "seconds", 'got "NaN"', "from 1 to 31536000"],
    [tool, { seconds: 5 }, "timer_name", "is missing", "1 to 100 characters"],
  ]),
  ...["set_timer", "timer", "get_timer_status"].flatMap((tool): typeof BAD =>
    [
      ["", '""'],
      ["  ", '"  "'],
      ["x".repeat(101), `"${"x".repeat(101)}"`],
      ["a:b", '"a:b" (it has a character'],
      ["a~2", '"a~2" (it has a character'],
      ["a\nb", '"a\\nb" (it has a character'],
      ["\u0007", '"\\u0007" (it has a character'],
      ["a\0b", '"a\\u0000b" (it has a character'],
      ["a\u2028b", '"a\u2028b" (it has a character'],
      ["\ud83d", '"\\ud83d" (it has a character'],
      [["tea"], '["tea"]'],
      [{ name: "tea" }, '{"name":"tea"}'],
      [true, "true"],
    ].map(([timer_name, got]) => [tool, { timer_name, seconds: 5 }, "timer_name", `got ${got}`, "1 to 100 characters"]),
  ),
  ...["probe_status", "await_result", "cancel_job"].flatMap((tool): typeof BAD => [
    [tool, {}, "job_names", "is missing", "1 to 100 job names"],
    [tool, { job_names: [] }, "job_names", "got []", "1 to 100 job names"],
    [tool, { job_names: "[]" }, "job_names", 'got "[]"', "1 to 100 job names"],
    [tool, { job_names: "" }, "job_names", 'got ""', "1 to 100 job names"],
    [tool, { job_names: [JOB, true] }, "job_names", `got ["${JOB}",true]`, "1 to 100 job names"],
    [tool, { job_names: [[JOB]] }, "job_names", `got [["${JOB}"]]`, "1 to 100 job names"],
    [tool, { job_names: null }, "job_names", "got null", "1 to 100 job names"],
    [tool, { job_names: { name: JOB } }, "job_names", `got {"name":"${JOB}"}`, "1 to 100 job names"],
    [tool, { job_names: many(10_000) }, "job_names", "(10000 entries)", "1 to 100 job names"],
    [tool, { job_names: many(101) }, "job_names", "(101 entries)", "1 to 100 job names"],
  ]),
  ["await_result", { job_names: JOB, timeout_seconds: 0 }, "timeout_seconds", "got 0", "from 1 to 300"],
  ["await_result", { job_names: JOB, timeout_seconds: 301 }, "timeout_seconds", "got 301", "from 1 to 300"],
  ["await_result", { job_names: JOB, timeout_seconds: "soon" }, "timeout_seconds", 'got "soon"', "from 1 to 300"],
  ["weather_range", { ...RANGE, from: "2013" }, "from", 'got "2013"', "YYYY-MM"],
  ["weather_range", { ...RANGE, from: "2013-13" }, "from", 'got "2013-13"', "YYYY-MM"],
  ["weather_range", { ...RANGE, from: "1939-12" }, "from", 'got "1939-12"', "from 1940-01"],
  ["weather_range", { ...RANGE, to: undefined }, "to", "is missing", "YYYY-MM"],
  ["weather_range", { ...RANGE, to: "2013-04" }, "to", "2013-04 is before 2013-05", "not before"],
  ["weather_range", { ...RANGE, to: "9999-12" }, "to", "months", "up to 240 months"],
  ["weather_range", { ...RANGE, confirm: "perhaps" }, "confirm", 'got "perhaps"', "true when the user agreed"],
];

function many(n: number) {
  return Array.from({ length: n }, (_, i) => `timer_${i}`);
}

describe.each(CLIENTS)("a wrong argument, sent by $kind,", ({ connect }) => {
  let client: McpClient;
  beforeAll(async () => {
    client = await connect(stack.url);
  });
  afterAll(() => client?.close());

  const cases = BAD.map(([tool, args, field, got, accepted]) => ({ tool, args, field, got, accepted }));
  test.each(cases)(
    "gets an error and does nothing: $tool, $field $got",
    async ({ tool, args, field, got, accepted }) => {
      const before = gate.calls.length;
      const { isError, text } = await client.callTool(tool, args);
      expect(isError).toBe(true);
      expect(text).toMatch(/^Nothing was done: /);
      const line = text.split("\n").find((line) => line.startsWith(`${field}: `));
      expect(line).toContain(got);
      expect(line).toMatch(/ Accepted: ./);
      expect(line).toContain(accepted);
      expect(gate.calls.length).toBe(before);
    },
  );

  test("gets a line of its own among several", async () => {
    const { text } = await client.callTool("start_gathering", { latitude: 91, month: 5, year: "never" });
    expect(text.split("\n").map((line) => line.split(":")[0])).toEqual([
      "Nothing was done",
      "latitude",
      "longitude",
      "year",
    ]);
  });

  test("is quoted only in part if it is long", async () => {
    const { text } = await client.callTool("set_timer", { timer_name: "long ".repeat(50_000), seconds: 5 });
    expect(text).toContain('timer_name: got "long long');
    expect(text.length).toBeLessThan(1_000);
  });
});
