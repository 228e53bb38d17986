/** A job that has ended its last workers rests, and operators learn of it. */

import pino from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { defineJob, implement } from "../../core/index.ts";
import { childOf } from "../../core/resonate/codec.ts";
import { ResonateClient } from "../../core/resonate/connection/client.ts";
import { endpointOf } from "../../core/resonate/connection/endpoint.ts";
import { executionMarkId } from "../../core/resonate/ids.ts";
import { type RunningServer, startResonate } from "../../server/node/http.ts";
import { jobStore } from "../../test/support/job-store.ts";
import { RunnerServer } from "../../worker/runner/runner-server.ts";

let server: RunningServer;
beforeAll(async () => {
  server = await startResonate({ port: 0, data: undefined, token: undefined, log: pino({ level: "silent" }) });
});
afterAll(() => server.close());

const tea = defineJob({ kind: "tea", args: z.object({ cup: z.string() }), id: ({ cup }) => cup });

test("a job whose last workers were lost is reported as blocked, and as going on when it runs again", async () => {
  const RESONATE_URL = server.url;
  const client = new ResonateClient({ url: RESONATE_URL });
  const store = jobStore(endpointOf({ RESONATE_URL, RESONATE_GROUP: "workers", RESONATE_NAMESPACE: "" }), [tea]);
  const { id } = await store.create(tea, "tea_1", { cup: "1" }, Date.now());
  for (let version = 0; version < 5; version++) {
    await client.send("task.acquire", { id, version, pid: "lost", ttl: 60_000 }, { origin: id });
    await client.send("task.release", { id, version: version + 1 }, { origin: id });
  }
  await client.call(childOf(executionMarkId(id, 5), Date.now() + 1e9, { param: { executions: 3 } }));

  const runner = new RunnerServer({ RESONATE_URL, LOG_LEVEL: "silent" }, [implement(tea, async () => ({}))]);
  const run = async (version: number) => {
    const promise = await client.call({ kind: "promise.get", data: { id } });
    const body = JSON.stringify({ task: { id, version }, promise });
    const { report } = await (await runner.fetch(new Request("http://runner/", { method: "POST", body }))).json();
    return report.news.waits;
  };
  const job = { job: "tea_1", kind: "tea" };
  expect(await run(5)).toEqual([
    { ...job, state: "blocked", says: expect.stringMatching(/^each worker that ran it was lost/) },
  ]);
  const rest = executionMarkId(id, 6);
  await client.call({ kind: "promise.settle", data: { id: rest, state: "resolved", value: {} } });
  expect(await run(6)).toEqual([job]);
});
