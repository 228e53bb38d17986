import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { recordForEvents } from "../../features/events/start.ts";
import { jobStore } from "../../test/support/job-store.ts";
import { type HttpServer, serveHttp } from "../../testing/stack/http-server.ts";
import { defineJob } from "../author/job.ts";
import { ResonateRefused, ResonateUnavailable } from "../resonate/connection/failures.ts";
import { listJobs } from "./list-jobs.ts";
import type { RemoteStore } from "./remote-store.ts";

const timer = defineJob({
  kind: "timer",
  args: z.object({ timer_name: z.string(), fires_at: z.string() }),
  id: ({ timer_name }) => timer_name,
});

/** Answers that a healthy Resonate server does not give, in order. The last one is repeated. */
let script: { status: number; body: string }[];
let asked: number;
let server: HttpServer;
let store: RemoteStore;
beforeAll(async () => {
  server = await serveHttp((_req, res) => {
    const { status, body } = script[Math.min(asked++, script.length - 1)] ?? { status: 404, body: "" };
    res.writeHead(status).end(body);
  });
  store = jobStore({ url: server.url, group: "workers", namespace: "" }, [timer]);
});
afterAll(() => server?.[Symbol.asyncDispose]());

/** An answer in the server's format. */
const answer = (status: number, data: unknown = "") => ({
  status,
  body: JSON.stringify({ kind: "promise.get", head: { corrId: "1", status, version: "2026-04-01" }, data }),
});

const fires_at = "2030-01-01T00:00:00.000Z";
const param = { data: btoa(JSON.stringify({ func: "timer", args: [{ timer_name: "tea", fires_at }], version: 1 })) };
const record = { id: "timer_tea", state: "pending", param, value: {}, tags: {}, timeoutAt: 9e12, createdAt: 1 };

/** The outcome of each kind of call when the server gives these answers. */
async function play(...answers: typeof script) {
  script = answers;
  const calls = [
    () => store.get("timer_tea"),
    async () => (await store.cancel("timer_tea"))?.promise,
    () => store.create(timer, "timer_tea", { timer_name: "tea", fires_at }, 0),
  ];
  const outcomes = [];
  for (const call of calls) {
    asked = 0;
    outcomes.push({ outcome: await call().catch((error: unknown) => error), asked });
  }
  return outcomes;
}

describe("a server that answers with", () => {
  test.each([
    ["401", answer(401, "no token"), "it refused this deployment's token"],
    ["403", answer(403, "not yours"), "it refused this deployment's token"],
    [
      "400 and a reason, which is not passed on,",
      answer(400, "Invalid request: id"),
      "it refused the request as malformed",
    ],
    ["413", { status: 413, body: "length limit exceeded" }, "the request is larger than it takes"],
  ])("%s refuses for good, and is not asked again", async (_what, reply, reason) => {
    for (const { outcome, asked } of await play(reply)) {
      expect([outcome, (outcome as Error).message, asked]).toEqual([expect.any(ResonateRefused), reason, 1]);
    }
  });

  test.each([
    ["a page", { status: 200, body: "<html></html>" }, "it answered 200"],
    ["a redirect's page", { status: 418, body: "<html></html>" }, "it answered 418"],
  ])("%s counts as unavailable, and is not asked again", async (_what, reply, reason) => {
    for (const { outcome, asked } of await play(reply)) {
      expect([outcome, (outcome as Error).message, asked]).toEqual([expect.any(ResonateUnavailable), reason, 1]);
      expect(outcome).not.toBeInstanceOf(ResonateRefused);
    }
  });

  test.each([
    ["429", answer(429), "it is at capacity"],
    ["503", { status: 503, body: "busy" }, "it is at capacity"],
    ["500", answer(500, "deadlock"), "it answered 500"],
    ["a gateway's 502", { status: 502, body: "<html></html>" }, "it answered 502"],
  ])("%s is asked a few more times, and then counts as unavailable", async (_what, reply, reason) => {
    for (const { outcome, asked } of await play(reply)) {
      expect((outcome as Error).message).toBe(reason);
      expect(outcome).toBeInstanceOf(ResonateUnavailable);
      expect(asked).toBeGreaterThan(1);
      expect(asked).toBeLessThan(10);
    }
  });

  test("500 for a moment is asked again until it answers", async () => {
    const found = answer(200, { promise: record });
    for (const { outcome } of await play(answer(500), answer(500), found)) {
      expect(outcome).toMatchObject({ name: "timer_tea", state: "pending", args: { timer_name: "tea", fires_at } });
    }
  });

  test("404 has no such promise", async () => {
    script = [answer(404, "Promise not found")];
    expect(await store.get("timer_tea")).toBeUndefined();
    expect(await store.cancel("timer_tea")).toBeUndefined();
  });
});

test("the server is not asked about a name that no job can have", async () => {
  script = [answer(200, { promise: record })];
  asked = 0;
  const channel = { address: "poll://uni@edge/1", closed: Promise.resolve(undefined) };
  for (const name of ["order-1", "timer_tea:0", "timer_a\nb", ""]) {
    expect(await store.get(name)).toBeUndefined();
    expect(await store.cancel(name)).toBeUndefined();
    expect(await store.listen(name, channel)).toBeUndefined();
  }
  expect(asked).toBe(0);
});

test("a list leaves jobs of kinds that this deployment lacks in their caller's record, and goes on after them", async () => {
  const key = "c0123456789abcdef.";
  const rows = [2, 1].map((n) => ({ id: `${key}report_${n}`, state: "resolved", startedAt: n, labels: [] }));
  const record = { list: vi.fn(async () => rows), note: vi.fn() };
  const records = { limits: { jobs: 0, bytes: 0 }, of: () => record as never };
  const options = { by: { key, requestId: "" }, records };
  const own = jobStore({ url: server.url, group: "workers", namespace: "" }, [timer], options);
  const steps = listJobs(own, { limit: 10, cursor: { startedAt: 3, name: "report_3" } });
  for await (const { job } of steps) expect(job).toBeUndefined();
  expect(record.note).not.toHaveBeenCalled();
  const after = { startedAt: 3, id: `${key}report_3` };
  expect(record.list).toHaveBeenCalledWith(expect.objectContaining({ after }));
});

test("a start while the Resonate server and the caller's record are away fails once, without a second rejection", async () => {
  script = [answer(400)];
  const reserve = () => Promise.reject(new ResonateUnavailable("the record is away"));
  const records = { limits: { jobs: 0, bytes: 0 }, of: () => ({ reserve }) as never };
  const options = { records, features: [recordForEvents(records, () => false)] };
  const away = jobStore({ url: server.url, group: "workers", namespace: "" }, [], options);
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => void unhandled.push(reason);
  process.on("unhandledRejection", note);
  const start = away.create({ ...timer, runs: "edge" }, "timer_tea", { timer_name: "tea", fires_at }, 0);
  await expect(start).rejects.toThrow("malformed");
  await new Promise((resolve) => setTimeout(resolve));
  process.off("unhandledRejection", note);
  expect(unhandled).toEqual([]);
});
