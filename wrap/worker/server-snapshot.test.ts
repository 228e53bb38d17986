import { afterEach, expect, test, vi } from "vitest";
import type { Connection } from "./connection/connection.ts";
import { AnswerLost } from "./host/errors.ts";
import { snapshotOf } from "./server-snapshot.ts";

/** A connection to a server whose list of tools has `pages` pages of `size` tools. */
function connectionTo(pages: number, size: number): Connection {
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

afterEach(() => vi.useRealTimers());

test("the list of tools may take as long as the server may take to start, and the message about a longer one names the option", async () => {
  vi.useFakeTimers();
  const slow = (ms: number) => {
    const connection = connectionTo(1, 2);
    const { request } = connection;
    const delayedRequest = (...[method, params]: Parameters<Connection["request"]>) => {
      const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>();
      setTimeout(() => resolve(request(method, params).result), ms);
      return { result: promise, cancel: (why: string) => reject(new AnswerLost(`it was cancelled: ${why}`)) };
    };
    return Object.assign(connection, { request: delayedRequest });
  };
  const read = (ms: number) =>
    snapshotOf(slow(ms), 60_000).then(
      ({ tools }) => tools.length,
      (error: Error) => error.message,
    );
  const both = Promise.all([read(40_000), read(70_000)]);
  await vi.advanceTimersByTimeAsync(70_000);
  expect(await both).toEqual([
    2,
    "tools/list: it was not answered within 60 s, and startTimeout (--start-timeout) allows more",
  ]);
});

test("a server's name has no characters that control the terminal in which it is shown, or reverse its text", async () => {
  const connection = connectionTo(1, 1);
  const info = { name: "ac\u001b[2Jm\u202ee", version: "1\n2\u2066" };
  const client = { ...connection.client, getServerVersion: () => info };
  const { server } = await snapshotOf(Object.assign(connection, { client }));
  expect(server).toEqual({ name: "ac[2Jme", version: "12" });
});

test("a list of many pages is read to its end", async () => {
  const { tools, omissions } = await snapshotOf(connectionTo(60, 2));
  expect(tools).toHaveLength(120);
  expect(omissions).toBeUndefined();
});

test("what is not read of a list without an end is reported", async () => {
  const full = await snapshotOf(connectionTo(Number.POSITIVE_INFINITY, 3));
  expect(full.tools).toHaveLength(2_000);
  expect(full.omissions).toEqual([
    "Its list is longer than 2000 tools or 4000000 characters: what comes after the first 2000 is not read.",
  ]);
  const empty = await snapshotOf(connectionTo(Number.POSITIVE_INFINITY, 0));
  expect(empty.omissions).toEqual([
    "Its list has more than 20 empty pages in a row: what comes after the first 0 is not read.",
  ]);
});

/** A connection to a server whose list of tools has these pages, by cursor. */
function connectionBy(pageOf: (cursor: unknown) => { names: string[]; next: unknown }) {
  const requests: unknown[] = [];
  const request = (_method: string, { cursor }: { cursor?: unknown }) => {
    requests.push(cursor);
    const { names, next } = pageOf(cursor);
    const tools = names.map((name) => ({ name, inputSchema: { type: "object" } }));
    return { result: Promise.resolve({ tools, nextCursor: next }), cancel() {} };
  };
  return { connection: Object.assign(connectionTo(1, 1), { request }) as Connection, requests };
}

test.each([
  ["null", () => ({ names: ["a"], next: null }), 1],
  ["an empty text", () => ({ names: ["a"], next: "" }), 1],
  ["the same cursor for the same page", () => ({ names: ["a"], next: "2" }), 2],
  ["a new cursor for the same page", (cursor: unknown) => ({ names: ["a"], next: `${cursor}+` }), 2],
  ["a circle", (cursor: unknown) => (cursor === "2" ? { names: ["b"], next: "1" } : { names: ["a"], next: "2" }), 3],
  ["the cursor of an empty page", (cursor: unknown) => ({ names: cursor === undefined ? ["a"] : [], next: "2" }), 2],
])("a list ends where its next cursor is %s, and has each entry once", async (_what, pageOf, count) => {
  const { connection, requests } = connectionBy(pageOf);
  const { tools, omissions } = await snapshotOf(connection);
  expect([tools.map(({ name }) => name).join(), omissions]).toEqual([count === 3 ? "a,b" : "a", undefined]);
  expect(requests).toHaveLength(count);
});
