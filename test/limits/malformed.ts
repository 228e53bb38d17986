/** Requests whose content has the wrong form, in every way in which there can be much of it. */
import { call, JSON_HEADERS } from "./support.ts";

/** A valid value for each argument, so that the malformed one is looked at. */
export const VALID = {
  latitude: 1,
  longitude: 1,
  year: 2013,
  month: 1,
  from: "2012-01",
  to: "2012-02",
  timer_name: "x",
  seconds: 600,
  job_names: ["timer_none"],
  job_name: "timer_none",
  question: "q",
  answer: "{}",
};

export interface Malformed {
  /** For people. */
  what: string;
  path: string;
  headers: Record<string, string>;
  body: unknown;
  /** A `ping` with the same content, which the edge only reads. */
  ping: unknown;
}

/** A list of equal pieces, `length` characters long. */
const filled = (piece: unknown, length: number) =>
  Array.from({ length: Math.floor(length / (JSON.stringify(piece).length + 1)) }, () => piece);

/** Values of the wrong form, `length` characters long, for the argument of a name. */
type Shape = (length: number, argument: string) => unknown;

/** The shapes that cost most: as the value of any argument and of any parameter. */
const EXPENSIVE: Record<string, Shape> = {
  "a JSON text of objects": (length) => JSON.stringify(filled({ job_name: { job_name: "x" } }, length / 2)),
  "an object of many names": (length) =>
    Object.fromEntries(filled("abcdefghijk", length).map((name, n) => [`${name}${n}`, n])),
  "nested lists": (length) => filled(JSON.parse("[".repeat(80) + "]".repeat(80)), length),
};

const OTHERS: Record<string, Shape> = {
  "a list of numbers": (length) => filled(1, length),
  "a list of empty objects": (length) => filled({}, length),
  "a list of empty texts": (length) => filled("", length),
  "a list of texts and a number": (length) => [...filled("a", length), 1],
  "a list of objects in objects": (length) => filled({ job_name: { job_name: "x" } }, length),
  "an argument inside itself": (length, argument) =>
    Array.from({ length: 80 }).reduce((inner) => ({ [argument]: inner }), filled(1, length)),
  "one long text in a list": (length) => ["x".repeat(length)],
};

/** What a list has that is sent in place of a message. */
const MESSAGES = [1, {}, { jsonrpc: "2.0", id: 1 }];

const LISTS = "a list of messages";

export const SHAPES = [...Object.keys(EXPENSIVE), ...Object.keys(OTHERS), LISTS];

/** The parameters of methods beside the arguments of tools. */
const METHODS: [method: string, params: readonly string[]][] = [
  ["tools/list", ["cursor", "_meta"]],
  ["tools/call", ["name", "arguments", "_meta", "task", "inputResponses", "requestState"]],
  ["resources/read", ["uri"]],
  ["resources/subscribe", ["uri"]],
  ["completion/complete", ["ref", "argument", "context"]],
  ["prompts/get", ["name", "arguments"]],
  ["tasks/get", ["taskId"]],
  ["tasks/update", ["taskId", "inputResponses"]],
  ["tasks/cancel", ["taskId"]],
  ["events/poll", ["name", "cursor", "params", "limit"]],
  ["events/subscribe", ["name", "delivery", "params", "cursor"]],
  ["events/unsubscribe", ["name", "delivery", "params"]],
  ["initialize", ["protocolVersion", "capabilities", "clientInfo"]],
  ["logging/setLevel", ["level"]],
];
const VALID_PARAMS = { name: "job.ended", uri: "job://timer_none", taskId: "none", cursor: null };
const PATHS = ["/callbacks/none", "/resonate", "/resonate/x", "/pages/session", "/view/none", "/nowhere"];
const META_2026 = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
};

const message = (method: string, params: object) => ({ jsonrpc: "2.0", id: 1, method, params });

/** The requests with content of a shape of {@link SHAPES}, about `length` characters long. `tools` is what `tools/list` returns. */
export function malformed(
  shape: string,
  length: number,
  tools: readonly { name: string; inputSchema: { properties: object } }[],
): Malformed[] {
  const request = (what: string, content: unknown, body: unknown, more: Partial<Malformed> = {}): Malformed => ({
    what: `${shape}: ${what}`,
    path: "/mcp",
    headers: JSON_HEADERS,
    body,
    ping: message("ping", { _meta: { content } }),
    ...more,
  });
  if (shape === LISTS) {
    return MESSAGES.map((each) => request(JSON.stringify(each), filled(each, length), filled(each, length)));
  }
  const contentFor = EXPENSIVE[shape] ?? OTHERS[shape];
  if (!contentFor) throw new Error(`There is no shape ${shape}`);
  const inArguments = tools.flatMap(({ name, inputSchema }) =>
    Object.keys(inputSchema.properties).map((argument) => {
      const content = contentFor(length, argument);
      return request(
        `${name}, ${argument}`,
        content,
        call(name, { ...VALID, timeout_seconds: 1, [argument]: content }),
      );
    }),
  );
  if (!(shape in EXPENSIVE)) return inArguments;

  const content = contentFor(length, "content");
  // The names in `_meta` are looked at one by one, also in a `ping`.
  const pingOf = (param: string) =>
    param === "_meta" && typeof content === "object" ? { ping: message("ping", { _meta: content }) } : {};
  const inParams = METHODS.flatMap(([method, params]) =>
    params.flatMap((param) => [
      request(`${method}, ${param}`, content, message(method, { ...VALID_PARAMS, [param]: content }), pingOf(param)),
      request(
        `${method}, ${param}, 2026`,
        content,
        message(method, {
          ...VALID_PARAMS,
          _meta: META_2026,
          [param]: param === "_meta" ? { ...META_2026, content } : content,
        }),
        { headers: { ...JSON_HEADERS, "mcp-protocol-version": "2026-07-28", "mcp-method": method } },
      ),
    ]),
  );
  return [...inArguments, ...inParams, ...PATHS.map((path) => request(path, content, content, { path }))];
}
