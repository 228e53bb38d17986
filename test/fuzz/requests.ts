/** Valid requests, and requests with one fault, whose answers do not change over time. */
import fc from "fast-check";
import { anyJson, anyString } from "./arbitraries.ts";

const PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion";

const nothing = fc.constant({});
const capabilities = fc.record(
  {
    elicitation: fc.record({ form: nothing, url: nothing }, { requiredKeys: [] }),
    extensions: fc.record({ "io.modelcontextprotocol/tasks": nothing }, { requiredKeys: [] }),
    roots: fc.record({ listChanged: fc.boolean() }, { requiredKeys: [] }),
    sampling: fc.record({ context: nothing, tools: nothing }, { requiredKeys: [] }),
  },
  { requiredKeys: [] },
);
const clientInfo = fc.record(
  { name: anyString, version: anyString, title: anyString },
  { requiredKeys: ["name", "version"] },
);
const progressToken = fc.oneof(fc.integer(), anyString);
const modernMeta = fc.record(
  {
    [PROTOCOL_VERSION]: fc.constant("2026-07-28"),
    "io.modelcontextprotocol/clientInfo": clientInfo,
    "io.modelcontextprotocol/clientCapabilities": capabilities,
    progressToken,
  },
  { requiredKeys: [PROTOCOL_VERSION, "io.modelcontextprotocol/clientCapabilities"] },
);
const legacyMeta = fc.record({ progressToken }, { requiredKeys: [] });

/** Requests whose answers are always the same. */
const constant = fc.constantFrom<{ method: string; params: Record<string, unknown> }>(
  { method: "tools/list", params: {} },
  { method: "server/discover", params: {} },
  { method: "resources/list", params: {} },
  { method: "resources/templates/list", params: {} },
  { method: "ping", params: {} },
  { method: "tasks/get", params: { taskId: "none" } },
  { method: "tools/call", params: { name: "no_such_tool", arguments: {} } },
  { method: "tools/call", params: { name: "probe_status", arguments: { job_names: ["timer_none"] } } },
  { method: "tools/call", params: { name: "set_timer", arguments: { seconds: "soon" } } },
  { method: "tools/call", params: { name: "await_result", arguments: { job_names: ["timer_none"] } } },
  { method: "tools/call", params: { name: "weather_data", arguments: { year: 1 } } },
);

const revision = fc.constantFrom("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07", "2026-07-28");
const initialize = fc
  .record({ protocolVersion: revision, capabilities, clientInfo })
  .map((params) => ({ method: "initialize", params: params as Record<string, unknown> }));
const asked = fc.oneof({ weight: 5, arbitrary: constant }, { weight: 1, arbitrary: initialize });

export interface Request {
  message: { jsonrpc: unknown; id: unknown; method: string; params: Record<string, unknown> };
  headers: Record<string, string>;
}

const rightRequest: fc.Arbitrary<Request> = fc
  .record({
    asked,
    modern: fc.option(modernMeta, { freq: 2 }),
    legacy: fc.option(legacyMeta),
    id: fc.oneof(fc.integer(), anyString),
  })
  .map(({ asked: { method, params }, modern, legacy, id }) => {
    const _meta = modern ?? legacy;
    const name = params.name ?? params.taskId;
    return {
      message: { jsonrpc: "2.0", id, method, params: { ...params, ...(_meta && { _meta }) } },
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": modern ? "2026-07-28" : "2025-11-25",
        ...(modern && { "mcp-method": method, ...(typeof name === "string" && { "mcp-name": name }) }),
      },
    };
  });

type Fault = (request: Request, at: number) => void;

const replace = (name: string | undefined, value: unknown): Fault => {
  return ({ message }, at) => {
    const [object, replaced] = fieldIn(message, at);
    object[name ?? replaced] = value;
  };
};
const remove: Fault = ({ message }, at) => {
  const [object, name] = fieldIn(message, at);
  delete object[name];
};
const setHeader = (name: string, value: string): Fault => {
  return ({ headers }) => {
    headers[name] = value;
  };
};
const addParam = (name: string): Fault => {
  return ({ message }) => {
    message.params[name] = {};
  };
};
/** Gives the request a name that must be encoded in the header, but is not. */
const misname: Fault = ({ message: { params }, headers }) => {
  for (const name of ["name", "taskId"]) {
    if (name in params) params[name] = headers["mcp-name"] = "=?base64?cHJvYmVfc3RhdHVz?=";
  }
};

const foreignName = fc.oneof(anyString, fc.constantFrom("experimental", "icons", "applyDefaults", PROTOCOL_VERSION));
const foreignValue = fc.oneof(anyJson, fc.constantFrom({}, { x: {} }, [], true, "2026-07-28"));
const headerNames = fc.constantFrom("accept", "mcp-protocol-version", "mcp-method", "mcp-name");
const headerValues = fc.constantFrom("", "2025-03-26", "2020-01-01", "2026-07-28", "tools/list", "probe_status");

/** A fault, which changes a request at the place that a number selects. */
const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.tuple(fc.constant(undefined), foreignValue).map(([name, value]) => replace(name, value)),
  fc.tuple(foreignName, foreignValue).map(([name, value]) => replace(name, value)),
  fc.tuple(headerNames, headerValues).map(([name, value]) => setHeader(name, value)),
  fc.constantFrom("inputResponses", "requestState", "cursor", "task").map(addParam),
  fc.constantFrom(remove, misname),
);

type Field = [object: Record<string, unknown>, name: string];

/** The field at position `at` (modulo their number) among the fields that a fault may change: all except `method`. */
function fieldIn(message: Request["message"], at: number): Field {
  const fields = fieldsIn(message).filter(([, name]) => name !== "method");
  return fields[at % fields.length] as Field;
}

function fieldsIn(value: object): Field[] {
  const object = value as Record<string, unknown>;
  return Object.keys(object).flatMap((name): Field[] => {
    const inner = name === "arguments" ? undefined : object[name];
    return [[object, name], ...(typeof inner === "object" && inner !== null ? fieldsIn(inner) : [])];
  });
}

/** Requests of both revisions with their headers, valid or with one fault. */
export const requests: fc.Arbitrary<Request> = fc
  .tuple(rightRequest, fc.option(fault, { freq: 8 }), fc.nat())
  .map(([right, spoil, at]) => {
    const request = structuredClone(right);
    spoil?.(request, at);
    return request;
  });
