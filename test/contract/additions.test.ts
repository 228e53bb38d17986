// The embedded server's additions to the protocol, on either host. The standalone server, at RESONATE_URL, ignores or refuses them.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MAX_BATCH_LINES, NDJSON } from "../../core/resonate/connection/protocol.ts";
import { timerTags } from "../../core/resonate/connection/server-rules.ts";
import { cleanUpId, journalEntryId } from "../../core/resonate/ids.ts";
import { until } from "../../testing/stack/program.ts";
import { action, head, promise, type Release, releaseOf, type Server, startServer, unique } from "./server.ts";

let server: Server;
let release: Release;
let isEmbedded: boolean;
beforeAll(async () => {
  server = await startServer();
  release = await releaseOf(server);
  isEmbedded = release === "embedded";
});
afterAll(() => server[Symbol.asyncDispose]());

describe("task.acquire with records", () => {
  const acquire = async (id: string, version: number, records?: number) =>
    (await server.call("task.acquire", { id, version, pid: "p", ttl: 60_000, records })).data;
  const record = (id: string, version: number, n: number, timeoutAt: number) =>
    server.call("task.fence", {
      id,
      version,
      action: action("promise.create", promise(journalEntryId(id, n), { timeoutAt, tags: timer(timeoutAt) })),
    });

  const timer = (due: number) => ({ "resonate:timer": "true", ...(release === "0.10" && timerTags(due)) });

  /** Creates a job with `records` records. The last is a sleep that is over, so the task is free again. Returns the id. */
  async function wokenJob(records: number): Promise<string> {
    const id = unique("job");
    await server.call("promise.create", promise(id, { group: unique("g") }));
    await acquire(id, 0);
    for (let n = 1; n < records; n++) await record(id, 1, n, 1);
    await record(id, 1, records, Date.now() + 200);
    const actions = [action("promise.register_callback", { awaited: journalEntryId(id, records), awaiter: id })];
    await server.call("task.suspend", { id, version: 1, actions });
    await until("the sleep to end", async () => (await server.call("task.get", { id })).data.task.state === "pending");
    return id;
  }

  test("answers with the job's records from number `records` on, and with those that woke it", async () => {
    const id = await wokenJob(3);
    const { records, preload, task, promise } = await acquire(id, 1, 2);
    expect([task.version, promise.id]).toEqual([2, id]);
    expect(records).toBe(isEmbedded ? 2 : undefined);
    const states = preload.map((each: { id: string; state: string }) => [each.id, each.state]).sort();
    const [second, third] = [2, 3].map((n) => [journalEntryId(id, n), "resolved"]);
    expect(states).toEqual(isEmbedded ? [second, third] : []);
  });

  test("answers 0 with the records that woke the job only, and a request without `records` as the protocol says", async () => {
    const [withRecords, plain] = [await wokenJob(2), await wokenJob(2)];
    const { preload } = await acquire(withRecords, 1, 0);
    expect(preload.map(({ id }: { id: string }) => id)).toEqual(isEmbedded ? [journalEntryId(withRecords, 2)] : []);
    expect(await acquire(plain, 1)).toMatchObject({ preload: [] });
  });

  test("answers without records when a job has very many", async () => {
    const id = await wokenJob(102);
    const { records, preload, task } = await acquire(id, 1, 1);
    expect([records, preload, task.version]).toEqual([undefined, [], 2]);
  });
});

test("promise.forget removes all generations of a name, and none while one of their clean-ups is pending", async () => {
  const first = unique("trip");
  const [second, cleanUp] = [`${first}~2`, cleanUpId(`${first}~2`)];
  for (const id of [first, second, cleanUp]) await server.call("promise.create", promise(id));
  const settle = (id: string) => server.call("promise.settle", { id, state: "resolved", value: {} });
  const statuses = async () =>
    Promise.all([first, second, cleanUp].map(async (id) => (await server.call("promise.get", { id })).status));
  // The types of the SDK lack this addition.
  const forget = async () => (await server.call("promise.forget" as "promise.get", { id: first })).status;
  await settle(first);
  await settle(second);
  expect(await forget()).toBe(isEmbedded ? 422 : 400);
  expect(await statuses()).toEqual([200, 200, 200]);
  await settle(cleanUp);
  expect(await forget()).toBe(isEmbedded ? 200 : 400);
  expect(await statuses()).toEqual(isEmbedded ? [404, 404, 404] : [200, 200, 200]);
});

describe("requests on lines", () => {
  const post = (bodies: string[]) =>
    fetch(server.url, { method: "POST", headers: { "content-type": NDJSON }, body: bodies.join("\n") });
  const create = (id: string, corrId: string) =>
    JSON.stringify({ kind: "promise.create", head: { ...head(), corrId }, data: promise(id) });
  const exists = async (id: string) => (await server.call("promise.get", { id })).status === 200;

  test("are answered in order, each on its own line", async () => {
    const [one, two] = [unique("one"), unique("two")];
    const response = await post([create(one, "1"), "{", create(two, "2")]);
    if (!isEmbedded) {
      expect(response.status).toBe(400);
      expect([await exists(one), await exists(two)]).toEqual([false, false]);
      return;
    }
    expect([response.status, response.headers.get("content-type")]).toEqual([200, NDJSON]);
    const answers = (await response.text()).split("\n").map((line) => JSON.parse(line));
    expect(answers).toMatchObject([
      { head: { corrId: "1", status: 200 }, data: { promise: { id: one } } },
      { head: { status: 400 } },
      { head: { corrId: "2", status: 200 }, data: { promise: { id: two } } },
    ]);
    expect([await exists(one), await exists(two)]).toEqual([true, true]);
  });

  test("are refused when they are too many, and none is executed", async () => {
    const ids = Array.from({ length: MAX_BATCH_LINES + 1 }, (_, n) => unique(`n${n}`));
    const response = await post(ids.map((id) => create(id, "1")));
    expect(response.status).toBe(isEmbedded ? 413 : 400);
    expect(await exists(ids[0] as string)).toBe(false);
  });
});
