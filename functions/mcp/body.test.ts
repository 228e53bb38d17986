import { expect, test } from "vitest";
import { readBody } from "./body.ts";

const read = (message: object) =>
  readBody(
    new Request("http://localhost/mcp", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: {}, ...message }),
    }),
  );

test.each([
  ["id", { id: "x".repeat(1_001) }, null],
  ["method", { method: "x".repeat(1_001) }, 1],
  ["progressToken", { params: { _meta: { progressToken: "x".repeat(1_001) } } }, 1],
])("a request is refused for a long %s, which answers would repeat", async (name, message, id) => {
  const response = (await read(message)) as Response;
  const { id: repeated, error } = (await response.json()) as { id: unknown; error: { code: number; message: string } };
  expect([response.status, repeated, error.code]).toEqual([400, id, -32600]);
  expect(error.message).toContain(`its ${name} has more than 1000 characters`);
});

test("texts of the usual length are repeated", async () => {
  const params = { _meta: { progressToken: "x".repeat(1_000) } };
  expect(await read({ id: "x".repeat(1_000), params })).toMatchObject({ weight: 1 });
});
