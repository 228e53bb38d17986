// The state that `move` brings to a server.

import { afterAll, beforeAll, expect, test } from "vitest";
import { moveRows } from "../../cli/backup/move-rows.ts";
import { ResonateClient } from "../../core/resonate/connection/client.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import { ServerRules } from "../../core/resonate/connection/server-rules.ts";
import { until } from "../../testing/stack/program.ts";
import { promise, type Server, startServer, unique } from "./server.ts";

let server: Server;
let client: ResonateClient;
beforeAll(async () => {
  server = await startServer();
  client = new ResonateClient({ url: server.url, token: process.env.RESONATE_TOKEN });
});
afterAll(() => server[Symbol.asyncDispose]());

/** Moves promises as the embedded server has them. */
const move = (...promises: Omit<PromiseRecord, "createdAt">[]) =>
  moveRows(
    async function* () {
      for (const { param, value, tags, ...row } of promises) {
        const texts = { param: JSON.stringify(param), value: JSON.stringify(value), tags: JSON.stringify(tags) };
        yield { table: "promises" as const, row: { ...row, ...texts, createdAt: Date.now() } };
      }
    },
    client,
    new ServerRules(client, unique("moved")),
  );

test("a moved timer fires by itself, and a moved callback times out by itself", async () => {
  const [lot, timer, callback] = [unique("lot"), unique("timer"), unique("callback")];
  const pending = (id: string, tags = {}) => ({
    ...promise(id, { timeoutAt: Date.now() + 2_000, tags: { lot, ...tags } }),
    state: "pending" as const,
    value: {},
  });
  await move(pending(timer, { "resonate:timer": "true" }), pending(callback));
  // A search settles nothing, unlike a request about one promise.
  const stateOf = async (id: string) => {
    const { data } = await server.call("promise.search", { tags: { lot } });
    return data.promises.find((each: PromiseRecord) => each.id === id)?.state;
  };
  await until("the timer to fire", async () => (await stateOf(timer)) === "resolved");
  await until("the callback to time out", async () => (await stateOf(callback)) === "rejected_timedout");
});

test("the promise by which the embedded server's rules were read is moved to each server", async () => {
  const embedded = await startServer({ own: true });
  const namespace = unique("rules");
  await new ServerRules(new ResonateClient({ url: embedded.url }), namespace).armsTargetsOnly();
  const { data } = await embedded.call("promise.search", {});
  await embedded[Symbol.asyncDispose]();
  expect(data.promises.map(({ tags }: PromiseRecord) => tags["resonate:delay"])).toEqual(["?"]);
  expect(await move(...data.promises)).toMatchObject({ ended: 1 });
});
