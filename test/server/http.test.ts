import { connect as connectSocket } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MemoryState } from "../../server/engine/memory-state.ts";
import { until } from "../../testing/stack/program.ts";
import { head, promise, type Server, startServer, unique } from "../contract/server.ts";
import { anyRequest } from "./histories.ts";

let server: Server;
beforeAll(async () => {
  server = await startServer({ own: true });
});
afterAll(() => server[Symbol.asyncDispose]());

const alive = async () => (await server.call("promise.create", promise(unique("alive")))).status;

describe("any body that is posted", () => {
  /** The statuses with which the protocol answers valid and invalid requests. None of them is a failure of the server. */
  const EXPECTED_STATUSES = [200, 300, 400, 403, 404, 409, 422];

  test("bytes", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
        expect(EXPECTED_STATUSES).toContain((await server.post(new Uint8Array(bytes))).status);
      }),
      { numRuns: 100 },
    );
    expect(await alive()).toBe(200);
  });

  test("JSON", async () => {
    await fc.assert(
      fc.asyncProperty(fc.json({ stringUnit: "binary" }), async (json) => {
        expect(EXPECTED_STATUSES).toContain((await server.post(json)).status);
      }),
      { numRuns: 100 },
    );
    expect(await alive()).toBe(200);
  });

  test("valid operations, and operations with one invalid value", async () => {
    const replacement = fc.record({
      at: fc.nat(),
      by: fc.oneof(fc.jsonValue({ stringUnit: "binary" }), fc.double(), fc.maxSafeNat()),
    });
    const statuses = new Set<number>();
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(anyRequest, fc.option(replacement)), { minLength: 20, maxLength: 20 }),
        async (requests) => {
          const bodies = requests.map(([makeRequest, change]) => {
            const request = structuredClone({ ...makeRequest(Date.now(), new MemoryState()), head: head() });
            return JSON.stringify(change ? replaceValue(request, change.at, change.by) : request);
          });
          for (const [i, { status, text }] of (await Promise.all(bodies.map(server.post))).entries()) {
            expect(EXPECTED_STATUSES, `${bodies[i]}\n${text}`).toContain(status);
            statuses.add(status);
          }
        },
      ),
      { numRuns: 60 },
    );
    expect([...statuses]).toEqual(expect.arrayContaining([200, 400, 404, 409]));
    expect(await alive()).toBe(200);
  });
});

/** Replaces the value at position `at` (modulo their number) within `tree` by another. */
function replaceValue(tree: object, at: number, by: unknown): object {
  const fields: [Record<string, unknown>, string][] = [];
  const visit = (node: unknown) => {
    if (typeof node !== "object" || node === null) return;
    for (const [key, value] of Object.entries(node)) {
      fields.push([node as Record<string, unknown>, key]);
      visit(value);
    }
  };
  visit(tree);
  const [node, key] = fields[at % fields.length] ?? [];
  if (node && key !== undefined) node[key] = by;
  return tree;
}

test("dispatches that a stuck worker does not read go to another worker", async () => {
  const group = unique("g");
  const { port } = new URL(server.url);
  const stuck = connectSocket(Number(port), "127.0.0.1");
  stuck.write(`GET /poll/${group}/stuck HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`);
  await new Promise((resolve) => stuck.once("readable", resolve));
  // Ids of 10,000 characters soon fill the network buffers of an unread connection.
  const jobs = Array.from({ length: 1_500 }, (_, n) => `${unique("j")}${n}${"x".repeat(10_000)}`);
  for (let n = 0; n < jobs.length; n += 50) {
    const some = jobs
      .slice(n, n + 50)
      .map((id) => server.call("promise.create", promise(id, { group, tags: { "resonate:branch": "" } })));
    await Promise.all(some);
  }
  using reader = await server.poll(group, "reader");
  await until("a dispatch that the stuck worker could not take", () => reader.inbox.length > 0);
  expect(await alive()).toBe(200);
  stuck.destroy();
  await until("the rest", () => new Set(reader.inbox.map(({ data }) => data.task.id)).size === jobs.length);
});

test("a worker that reconnects under its id gets the dispatches of its dead connection, which gets no further ones", async () => {
  const group = unique("g");
  // This connection is neither closed nor read.
  const dead = connectSocket(Number(new URL(server.url).port), "127.0.0.1");
  dead.write(`GET /poll/${group}/w HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`);
  await new Promise((resolve) => dead.once("readable", resolve));
  const [before, after] = [unique("j"), unique("j")];
  await server.call("promise.create", promise(before, { group }));
  using back = await server.poll(group, "w");
  await server.call("promise.create", promise(after, { group }));
  const ids = () => back.inbox.map(({ data }) => data.task.id);
  await until("both dispatches", () => ids().length === 2);
  expect(ids()).toEqual([before, after]);
  dead.destroy();
});

test("the server writes keep-alive comments to an idle connection", async () => {
  const silent = await fetch(`${server.url}/poll/${unique("g")}/1`);
  const reader = silent.body?.pipeThrough(new TextDecoderStream()).getReader();
  const comments = [(await reader?.read())?.value, (await reader?.read())?.value];
  expect(comments).toEqual([": keep-alive\n\n", ": keep-alive\n\n"]);
  await reader?.cancel();
});
