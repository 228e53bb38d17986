import { expect, test } from "vitest";
import * as z from "zod";
import { defineJob, type Job } from "../../core/author/job.ts";
import { encodeValue, lineage } from "../../core/resonate/codec.ts";
import { outputId } from "../../core/resonate/ids.ts";
import { jobStore } from "../../test/support/job-store.ts";
import { Simulation } from "../../testing/simulation/simulation.ts";
import { listJobs } from "./list.ts";
import { probeStatus } from "./probe-status.ts";

const KEY = "c0123456789abcdef.";
const job = defineJob({ kind: "job", args: z.object({ n: z.int() }), id: ({ n }) => String(n) }) as Job;
const NAMES = Array.from({ length: 100 }, (_, n) => `job_${n}`);
const HOUR_MS = 3_600_000;

/** Jobs of a caller, and the requests that are made for them. */
async function jobsOf(names: readonly string[]) {
  const sim = new Simulation({ now: () => Date.now() });
  const answer: typeof fetch = async (_url, init) => {
    const { kind, data } = JSON.parse(String(init?.body));
    const { status, data: answered } = await sim.send(kind, data);
    return Response.json({ kind, head: { status }, data: answered });
  };
  const rows = names.map((name, n) => ({ id: KEY + name, state: "resolved", startedAt: 1_000 - n, labels: [] }));
  const record = {
    note: async () => {},
    list: async ({ after, limit }: { after?: { id: string }; limit: number }) => {
      const from = after ? rows.findIndex(({ id }) => id === after.id) + 1 : 0;
      return rows.slice(from, from + limit);
    },
  };
  const endpoint = { url: "http://resonate", group: "workers", namespace: "", fetch: answer };
  const records = { limits: { jobs: 0, bytes: 0 }, of: () => record as never };
  const store = jobStore(endpoint, [job], { by: { key: KEY, requestId: "" }, records });
  const timeoutAt = Date.now() + HOUR_MS;
  for (const [n, name] of names.entries()) await store.create(job, name, { n }, timeoutAt - HOUR_MS);
  const context = { store, signal: AbortSignal.timeout(60_000) } as never;
  const resolveAll = async (value: unknown) => {
    const encoded = encodeValue(value);
    for (const name of names) await sim.send("promise.settle", { id: KEY + name, state: "resolved", value: encoded });
    sim.requests.clear();
  };
  const emit = (name: string, n: number) => {
    const id = outputId(KEY + name, n);
    return sim.send("promise.create", { id, timeoutAt: 1, param: encodeValue(n), tags: lineage(id) });
  };
  return { sim, resolveAll, emit, context };
}

test("of many results of 900 KB as many are read as an answer may, and a list comes in pages of as many", async () => {
  const names = NAMES.slice(0, 20);
  const { sim, resolveAll, context } = await jobsOf(names);
  await resolveAll("x".repeat(900_000));
  const { structuredContent } = await probeStatus.call({ job_names: names }, context);
  const { statuses, note } = structuredContent as { statuses: object[]; note: string };
  expect(statuses[0]).toMatchObject({ job_name: "job_0", status: "complete", summary: { characters: 900_002 } });
  expect(note).toContain(`The last ${names.length - statuses.length} names were left out`);
  expect(sim.requests.get("promise.get")).toBeLessThan(18);
  const listed: string[] = [];
  let cursor: string | undefined;
  do {
    sim.requests.clear();
    const answer = await listJobs([job]).call({ limit: 100, ...(cursor && { cursor }) }, context);
    const page = answer.structuredContent as { jobs: { job_name: string }[]; next_cursor?: string };
    listed.push(...page.jobs.map(({ job_name }) => job_name));
    expect(sim.requests.get("promise.get") ?? 0).toBeLessThan(8);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  expect(listed).toEqual(names);
});

test("a hundred jobs with a hundred partial results each cost a few requests a job", async () => {
  const { sim, emit, context } = await jobsOf(NAMES);
  for (const name of NAMES) for (let n = 1; n <= 100; n++) await emit(name, n);
  sim.requests.clear();
  const { structuredContent } = await probeStatus.call({ job_names: NAMES, partial_from: 0 }, context);
  const { statuses } = structuredContent as { statuses: { partial: object }[] };
  expect(statuses.map(({ partial }) => partial)).toEqual(
    NAMES.map(() => ({ values: [1, 2], next_offset: 2, more: true })),
  );
  const made = [...sim.requests.values()].reduce((sum, count) => sum + count, 0);
  expect(made).toBeLessThan(1_500);
});
