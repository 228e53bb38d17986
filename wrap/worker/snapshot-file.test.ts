import { expect, test } from "vitest";
import type { Connection } from "./connection/connection.ts";
import { snapshotOf } from "./snapshot-file.ts";

/** A connection to a server whose list of tools has `pages` pages of `size` tools. */
function paged(pages: number, size: number): Connection {
  const request = (_method: string, { cursor = 0 }: { cursor?: number }) => {
    const tools = Array.from({ length: size }, (_, i) => ({
      name: `tool_${cursor * size + i}`,
      inputSchema: { type: "object" },
    }));
    const result = { tools, ...(cursor + 1 < pages && { nextCursor: cursor + 1 }) };
    return { result: Promise.resolve(result), cancel() {} };
  };
  const client = {
    getServerVersion: () => ({ name: "acme", version: "1" }),
    getServerCapabilities: () => ({ tools: {} }),
    getInstructions: () => undefined,
  };
  return { request, client, revision: "2025-11-25" } as unknown as Connection;
}

test("a list of many pages is read to its end", async () => {
  const { tools, left } = await snapshotOf(paged(60, 2));
  expect(tools).toHaveLength(120);
  expect(left).toBeUndefined();
});

test("what is not read of a list without an end is reported", async () => {
  const full = await snapshotOf(paged(Number.POSITIVE_INFINITY, 3));
  expect(full.tools).toHaveLength(2_000);
  expect(full.left).toEqual([
    "Its list is longer than 2000 tools or 4000000 characters: what comes after the first 2000 is not read.",
  ]);
  const empty = await snapshotOf(paged(Number.POSITIVE_INFINITY, 0));
  expect(empty.left).toEqual(["Its list has more than 2000 pages: what comes after the first 0 is not read."]);
});
