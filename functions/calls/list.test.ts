import { expect, test } from "vitest";
import type { Job } from "../../core/author/job.ts";
import { Sealing } from "../../core/resonate/sealing.ts";
import { quota } from "../../features/quota/start.ts";
import { jobStore } from "../../test/support/job-store.ts";
import { Simulation } from "../../testing/simulation/simulation.ts";
import { timer } from "../../tools/timer/timer.ts";
import { listJobs } from "./list.ts";

const KEY = "c0123456789abcdef.";

test("of several jobs one that cannot be decrypted is left out with a note, and stays in the record", async () => {
  const sim = new Simulation({ now: () => Date.now() });
  const answer: typeof fetch = async (_url, init) => {
    const { kind, data } = JSON.parse(String(init?.body));
    const { status, data: answered } = await sim.send(kind, data);
    return Response.json({ kind, head: { status }, data: answered });
  };
  const endpoint = { url: "http://resonate", group: "workers", namespace: "", fetch: answer, codec: new Sealing() };
  const noted: unknown[] = [];
  const rows = ["timer_a", "timer_b"].map((name) => ({ id: KEY + name, state: "pending", startedAt: 1, labels: [] }));
  const record = {
    reserve: async () => "reserved",
    note: async (jobs: unknown[]) => void noted.push(...jobs),
    list: async ({ after }: { after?: object }) => (after ? [] : rows),
  };
  const records = { limits: { jobs: 0, bytes: 0 }, of: () => record as never };
  const store = jobStore(endpoint, [timer as Job], {
    by: { key: KEY, requestId: "" },
    records,
    features: [quota(records)],
  });
  const fires_at = new Date(Date.now() + 3_600_000).toISOString();
  for (const timer_name of ["a", "b"])
    await store.create(timer, `timer_${timer_name}`, { timer_name, fires_at }, Date.now());
  const sealed = sim.get(`${KEY}timer_a`);
  if (sealed) sealed.param.data = "sealed:none:AAAA";
  noted.length = 0;
  const context = { store, signal: AbortSignal.timeout(60_000) };
  const { structuredContent } = await listJobs([timer as Job]).call({}, context as never);
  expect(structuredContent).toMatchObject({
    jobs: [{ job_name: "timer_b", status: "running" }],
    note: expect.stringContaining("1 that cannot be decrypted, such as timer_a"),
  });
  expect(noted).toEqual([]);
});
