import { timingSafeEqual } from "node:crypto";
import { beforeAll, expect, test, vi } from "vitest";
import { newToken } from "../../cli/static-token.ts";
import { passOn, serveRows } from "./proxy.ts";

const operator = newToken();
const worker = newToken();
const short = { token: "short", sha256: "f9b0078b5df596d2ea19010c001bbd009e651de2c57e8fb7e355f31eb9d3f739" };

const listed = (name: string, ...tokens: { sha256: string }[]) =>
  JSON.stringify(tokens.map(({ sha256 }) => ({ name, sha256 })));

// Workers have it under another name than Node.
beforeAll(() => void Object.assign(crypto.subtle, { timingSafeEqual }));

/** What comes through to the server, to callers' rows and to the audit log. */
function scene() {
  const note = vi.fn(async () => {});
  const passed = vi.fn(async (_request: Request) => new Response("{}"));
  const resonate = { idFromName: () => "id", get: () => ({ fetch: passed }), getByName: () => ({ fetch: passed }) };
  const rows = { read: vi.fn(async () => ({ rows: [] })), write: vi.fn(async () => {}), forget: vi.fn(async () => {}) };
  const tokens = { OPERATOR_TOKENS: listed("olga", operator, short), RESONATE_TOKENS: listed("gpu", worker, short) };
  const options = { tokens, tries: { add: vi.fn() } as never, note };
  const post = (requests: object[], type: string) => {
    const body = requests.map((each) => JSON.stringify(each)).join("\n");
    const init = { method: "POST", headers: { "content-type": type }, body };
    return passOn(new Request("https://edge.example/resonate", init), resonate as never, options);
  };
  const onRows = (method: string, query: string) => {
    const headers = { authorization: `Bearer ${operator.token}` };
    const init = { method, headers, ...(method === "POST" && { body: "[]" }) };
    return serveRows(new Request(`https://edge.example/operate/callers?${query}`, init), rows, true, options);
  };
  return { note, passed, rows, post, onRows };
}

const settle = (auth: string, id: string) => ({ kind: "promise.settle", head: { auth }, data: { id } });
const read = (auth: string) => ({ kind: "promise.read", head: { auth }, data: { ids: ["c"] } });

test("what an operator's token changes at the server is noted, each line of several, and reads and workers are not", async () => {
  const { note, passed, post } = scene();
  await post([settle(operator.token, "a")], "application/json");
  const lines = [settle(operator.token, "b"), read(operator.token), settle(worker.token, "c")];
  await post(lines, "application/x-ndjson");
  expect(note.mock.calls).toEqual([
    ["olga", "promise.settle", { id: "a" }],
    ["olga", "promise.settle", { id: "b" }],
  ]);
  expect(passed).toHaveBeenCalledTimes(2);
});

test("a token of fewer than 16 characters opens nothing, though its hash is listed for operators and workers", async () => {
  const { passed, post } = scene();
  expect((await post([settle(short.token, "a")], "application/json")).status).toBe(401);
  expect(passed).not.toHaveBeenCalled();
});

test.each([
  ["DELETE", ""],
  ["DELETE", "caller="],
  ["DELETE", "callers=ada"],
  ["DELETE", "caller=ada&of=bob"],
  ["DELETE", "caller=ada&caller=bob"],
  ["GET", "before=1"],
  ["POST", "caller=ada"],
  ["PUT", ""],
])("a request about callers' rows that says more, less or else is refused as a whole: %s %j", async (method, query) => {
  const { note, rows, onRows } = scene();
  expect((await onRows(method, query)).status).toBe(400);
  const calls = [note, rows.read, rows.write, rows.forget].flatMap(({ mock }) => mock.calls);
  expect(calls).toEqual([]);
});

test("the rows of a caller are removed, and the audit log has it", async () => {
  const { note, rows, onRows } = scene();
  expect((await onRows("DELETE", "caller=ada")).status).toBe(200);
  expect(rows.forget).toHaveBeenCalledTimes(1);
  expect(note.mock.calls).toEqual([["olga", "forget", { caller: "ada" }]]);
});
