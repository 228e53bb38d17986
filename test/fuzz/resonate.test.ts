// The embedded Resonate server stores an accepted promise exactly as it was sent, and nothing of a refused one.
// test/server/http.test.ts posts arbitrary bodies.
import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type Answer, type Server, startServer } from "../contract/server.ts";
import { anyJson, anyString } from "./arbitraries.ts";

/** Multiplies the number of runs: `FUZZ_TIMES=20`. */
const TIMES = Number(process.env.FUZZ_TIMES ?? 1);

vi.setConfig({ testTimeout: 60_000 * TIMES });

let server: Server;
beforeAll(async () => {
  server = await startServer({ own: true });
});
afterAll(() => server?.[Symbol.asyncDispose]());

const odd = fc.oneof(anyString, fc.constantFrom("a:b", "a/b?c=d#e", "'; DROP TABLE promises; --", "x".repeat(5_000)));
const text = fc.oneof({ weight: 6, arbitrary: odd }, { weight: 1, arbitrary: anyJson });
const map = fc.oneof(
  { weight: 6, arbitrary: fc.dictionary(odd, odd, { maxKeys: 4 }) },
  { weight: 1, arbitrary: anyJson },
);
const promise = fc.record(
  {
    id: text,
    timeoutAt: fc.oneof(
      { weight: 6, arbitrary: fc.integer({ min: Date.now() + 3_600_000, max: Number.MAX_SAFE_INTEGER }) },
      { weight: 1, arbitrary: fc.constantFrom(-1, 0.5, 2 ** 53, 1e300, "1", null) },
    ),
    param: fc.record({ data: text, headers: map }, { requiredKeys: [] }),
    tags: map,
  },
  { requiredKeys: ["timeoutAt", "id"] },
);

test("promises with any ids, values, headers, tags and times", async () => {
  let [kept, refused] = [0, 0];
  await fc.assert(
    fc.asyncProperty(promise, async ({ id, timeoutAt, param, tags }) => {
      // Makes the id unique and the promise searchable.
      const run = randomUUID();
      const own = typeof id === "string" && id !== "" ? id + run : id;
      const marked = typeof tags === "object" && !Array.isArray(tags) ? { ...tags, run } : tags;
      const created = await server.call("promise.create", { id: own, timeoutAt, param, tags: marked });
      const found = await server.call("promise.search", { tags: { run } });
      if (created.status !== 200) {
        refused += 1;
        expect(created.status, JSON.stringify(created.data)).toBe(400);
        expect(found.data.promises).toEqual([]);
        if (typeof own === "string" && own.isWellFormed() && own !== "") await expectMissing(own);
        return;
      }
      kept += 1;
      const { promise } = (await server.call("promise.get", { id: own })).data;
      expect(promise).toMatchObject({ id: own, timeoutAt, state: "pending", tags: marked ?? {} });
      expect(Object.keys(promise.tags).length).toBe(Object.keys(marked ?? {}).length);
      expect(promise.param.data ?? null).toEqual(param?.data ?? null);
      expect(promise.param.headers ?? {}).toEqual(param?.headers ?? {});
      if (marked !== undefined) expect(found.data.promises).toEqual([promise]);
    }),
    { numRuns: 300 * TIMES },
  );
  expect(kept).toBeGreaterThan(50 * TIMES);
  expect(refused).toBeGreaterThan(50 * TIMES);
});

async function expectMissing(id: string): Promise<void> {
  const { status }: Answer = await server.call("promise.get", { id });
  expect(status).toBe(404);
}

test("any methods, paths and headers", async () => {
  const segment = fc.oneof(
    odd.filter((text) => text.isWellFormed()).map(encodeURIComponent),
    fc.constantFrom("%", "%ff", "..", ""),
  );
  const path = fc.oneof(
    fc.tuple(segment, segment).map(([group, id]) => `/poll/${group}/${id}`),
    fc.constantFrom("/", "/health", "/ready", "/poll", "/poll/", "/promises/x", "//", "/%"),
    fc.webPath(),
  );
  const method = fc.constantFrom("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD");
  const headers = fc.dictionary(
    fc.constantFrom("content-type", "accept", "authorization", "origin", "last-event-id", "content-encoding"),
    fc.constantFrom("", "gzip", "text/plain", "x".repeat(4_000), "Bearer x", "null"),
  );
  await fc.assert(
    fc.asyncProperty(method, path, headers, async (method, path, headers) => {
      const abort = AbortSignal.timeout(5_000);
      const body = method === "GET" || method === "HEAD" ? null : "{}";
      const response = await fetch(server.url + (path.startsWith("/") ? path : `/${path}`), {
        method,
        headers,
        body,
        signal: abort,
      });
      expect(response.status, `${method} ${path}`).toBeLessThan(500);
      await response.body?.cancel();
    }),
    { numRuns: 200 * TIMES },
  );
  expect((await fetch(`${server.url}/ready`)).status).toBe(200);
});
