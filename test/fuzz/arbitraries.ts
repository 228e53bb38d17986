/** Values that clients might send, from nearly right ones to absurd ones. */
import fc from "fast-check";
import { anyCharacter } from "../support/any-character.ts";

/** Any string, even with halves of surrogate pairs. */
export const anyString = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 30 }),
  fc.array(fc.nat(0xffff), { maxLength: 10 }).map((codes) => String.fromCharCode(...codes)),
  fc.constantFrom("__proto__", "constructor", "toString", "null", "", " ", "\u0000", "~", "~2", ":", "../..", "%00"),
);

/** Any JSON value. */
export const anyJson = fc.oneof(
  fc.jsonValue({ stringUnit: anyCharacter, maxDepth: 3 }),
  anyString,
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.maxSafeInteger(),
);

const number = (min: number, max: number) =>
  fc.oneof(
    fc.double({ min, max, noNaN: true }),
    fc.integer({ min: Math.floor(min), max: Math.ceil(max) }),
    fc.integer({ min: Math.floor(min), max: Math.ceil(max) }).map(String),
    fc.constantFrom(-0, min - 1, max + 1, 1e308, Number.MIN_VALUE, "1e3", "0x10", " 5 ", "NaN", "Infinity"),
  );

const timerName = fc.oneof(anyString, fc.constantFrom("tea", "tea~2", "a:b"));
const jobName = fc.oneof(
  timerName.map((name) => `timer_${name}`),
  fc.constantFrom(
    "weather_data_47.6_-122.3_2013_5",
    "weather_data_1_2_3_4~99999999999",
    "weather_range_1_2_2012-01_2014-05",
  ),
  anyString,
);
const yearMonth = fc.oneof(
  fc
    .tuple(fc.integer({ min: 1939, max: 2030 }), fc.integer({ min: 0, max: 13 }))
    .map(([y, m]) => `${y}-${String(m).padStart(2, "0")}`),
  anyString,
);

/** Values for the arguments of the tools, some of them right. Valid waits take a second at most. */
const ARGUMENTS: Record<string, fc.Arbitrary<unknown>> = {
  latitude: number(-90, 90),
  longitude: number(-180, 180),
  year: number(1940, 2026),
  month: number(1, 12),
  timezone: fc.oneof(anyString, fc.constantFrom("auto", "Asia/Tokyo", "asia/tokyo", "+05:00", "Etc/GMT+5", null)),
  job_names: fc.oneof(
    fc.array(
      fc.oneof(
        jobName,
        jobName.map((job_name) => ({ job_name })),
      ),
      { maxLength: 5 },
    ),
    jobName,
    fc.array(jobName, { maxLength: 3 }).map((names) => JSON.stringify(names)),
  ),
  timeout_seconds: fc.constantFrom(1, "1", 0, -1, 301, null, "", {}, 1e9),
  timer_name: fc.oneof(
    timerName,
    timerName.map((timer_name) => ({ timer_name })),
  ),
  seconds: number(1, 31_536_000),
  from: yearMonth,
  to: yearMonth,
  status: fc.constantFrom("running", "complete", "not_found", "", null, []),
  kind: fc.constantFrom("timer", "weather_data", "quota", "", null),
  limit: number(1, 100),
  cursor: anyString,
  confirm: fc.constantFrom(true, false, "true", "False", 1, null, "yes"),
};

/** Arguments for a tool with these properties: right, wrong, missing and unknown ones. */
export function argumentsOf(properties: readonly string[]): fc.Arbitrary<Record<string, unknown>> {
  const own = fc.record(
    Object.fromEntries(
      properties.map((name) => [
        name,
        fc.oneof({ weight: 6, arbitrary: ARGUMENTS[name] ?? anyJson }, { weight: 1, arbitrary: anyJson }),
      ]),
    ),
    { requiredKeys: [] },
  );
  const whole = fc.record(Object.fromEntries(properties.map((name) => [name, ARGUMENTS[name] ?? anyJson])));
  const foreign = fc.dictionary(anyString, anyJson, { maxKeys: 2 });
  return fc.oneof(
    whole,
    fc.tuple(own, foreign).map(([args, more]) => ({ ...args, ...more })),
  );
}

export const METHODS = [
  "server/discover",
  "initialize",
  "ping",
  "tools/list",
  "tools/call",
  "tasks/get",
  "tasks/update",
  "tasks/cancel",
  "tasks/list",
  "tasks/result",
  "subscriptions/listen",
  "resources/list",
  "prompts/get",
  "notifications/initialized",
  "notifications/cancelled",
];

const id = fc.oneof(fc.integer(), anyString, fc.constantFrom(null, 1.5, [], {}));
const meta = fc.record(
  {
    "io.modelcontextprotocol/protocolVersion": fc.oneof(
      fc.constantFrom("2026-07-28", "2025-11-25", "1999-01-01"),
      anyJson,
    ),
    "io.modelcontextprotocol/clientInfo": fc.oneof(fc.constant({ name: "fuzz", version: "1" }), anyJson),
    "io.modelcontextprotocol/clientCapabilities": fc.oneof(
      fc.constant({ extensions: { "io.modelcontextprotocol/tasks": {} } }),
      anyJson,
    ),
    progressToken: anyJson,
  },
  { requiredKeys: [] },
);
const params = fc.record(
  {
    _meta: fc.oneof({ weight: 5, arbitrary: meta }, { weight: 1, arbitrary: anyJson }),
    name: fc.oneof(
      fc.constantFrom("start_gathering", "set_timer", "probe_status", "weather_data", "no_such_tool"),
      anyJson,
    ),
    arguments: fc.oneof(
      argumentsOf(["timer_name", "seconds"]),
      argumentsOf(["latitude", "longitude", "year", "month"]),
      anyJson,
    ),
    taskId: anyJson,
    inputResponses: anyJson,
    cursor: anyJson,
    task: anyJson,
    notifications: fc.oneof(fc.record({ taskIds: fc.oneof(fc.array(anyJson, { maxLength: 5 }), anyJson) }), anyJson),
    protocolVersion: fc.constantFrom("2025-11-25", "2024-11-05", 3),
    capabilities: anyJson,
    clientInfo: anyJson,
  },
  { requiredKeys: [] },
);

/** A JSON-RPC message, or something similar. */
export const envelope = fc.record(
  {
    jsonrpc: fc.oneof({ weight: 8, arbitrary: fc.constant("2.0") }, { weight: 1, arbitrary: anyJson }),
    id,
    method: fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...METHODS) }, { weight: 1, arbitrary: anyJson }),
    params: fc.oneof({ weight: 8, arbitrary: params }, { weight: 1, arbitrary: anyJson }),
    result: anyJson,
    error: anyJson,
  },
  { requiredKeys: [] },
);

/** Any value that HTTP permits in a header. */
const headerValue = fc.oneof(
  fc.string({
    unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => (code === 0x7f ? "~" : String.fromCharCode(code))),
    maxLength: 40,
  }),
  fc.constantFrom(
    "",
    "*/*",
    "application/json",
    "text/event-stream",
    "2026-07-28",
    "2025-11-25",
    "tools/call",
    "=?base64?8J+Yig==?=",
    "a".repeat(8_000),
  ),
);

/** Headers with and without a meaning in the protocol. */
export const headers = fc.dictionary(
  fc.constantFrom(
    "accept",
    "content-type",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "mcp-session-id",
    "last-event-id",
    "authorization",
    "origin",
    "mcp-param-year",
    "x-forwarded-for",
    "content-language",
    "cookie",
  ),
  headerValue,
  { maxKeys: 6 },
);
