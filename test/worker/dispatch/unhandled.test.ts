/** Workers of one group that do not all know the same functions. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { until } from "../../../testing/stack/program.ts";
import { ownGroup, startWorker } from "../../../testing/stack/worker-process.ts";
import { startGate } from "../../support/gate.ts";
import { type Resonate, startResonate } from "../../support/resonate.ts";

vi.setConfig({ testTimeout: 120_000 });

let resonate: Resonate;
beforeAll(async () => {
  resonate = await startResonate();
});
afterAll(() => resonate?.[Symbol.asyncDispose]());

/** A worker without the timers and weather jobs of the product's own worker, which in turn lacks this one's functions. */
const script = "test/worker/scripts/odd-worker.ts";

/** A separate worker group for a test, with a gate that counts the claims of its workers. */
async function scene() {
  const gate = await startGate(resonate.url);
  const { group, namespace, env } = ownGroup();
  const settings = { ...resonate.env, ...env, RESONATE_URL: gate.url, LEASE_SECONDS: "600" };
  return {
    worker: (options?: { script: string }) => startWorker(settings, options),
    start: (id: string, func: string, args: unknown = {}) =>
      resonate.start({ id: namespace + id, func, args, group, timeoutAt: Date.now() + 600_000 }),
    settled: async (id: string) => (await resonate.settled(namespace + id, 90_000)).state,
    claims: () => gate.calls.filter(({ kind }) => kind === "task.acquire").length,
    [Symbol.asyncDispose]: () => gate[Symbol.asyncDispose](),
  };
}

test("a job reaches the worker that has its function, past others that lack it", async () => {
  await using the = await scene();
  await using _odd = await the.worker({ script });
  await using _another = await the.worker({ script });
  await using _ours = await the.worker();
  const names = Array.from({ length: 10 }, (_, i) => `tea${i}`);
  for (const timer_name of names) {
    await the.start(`timer_${timer_name}`, "timer", { timer_name, fires_at: new Date().toISOString() });
    await the.start(`echo_${timer_name}`, "echo");
  }
  for (const name of names) {
    // No lease has to lapse first, which would take ten minutes.
    expect(await the.settled(`timer_${name}`)).toBe("resolved");
    expect(await the.settled(`echo_${name}`)).toBe("resolved");
  }
});

test("workers that lack a function pass its job on at growing intervals until a worker with the function comes", async () => {
  await using the = await scene();
  await using odd = await the.worker({ script });
  await using another = await the.worker({ script });
  const begun = performance.now();
  await the.start("timer_tea", "timer", { timer_name: "tea", fires_at: new Date().toISOString() });
  await until("it to be claimed 12 times", () => the.claims() >= 12, 100_000);
  // One of the two has claimed it at least six times, after pauses of at least 0.1, 0.2, 0.4, 0.8 and 1.6 seconds.
  expect(performance.now() - begun).toBeGreaterThan(3_000);
  const warnings = [odd, another].flatMap((worker) =>
    worker.logsOf("timer_tea").filter(({ msg }) => msg === "no function for this job here"),
  );
  expect(warnings.length).toBe(2);
  const [told] = [odd, another].flatMap((worker) =>
    worker.logsOf("timer_tea").filter(({ msg }) => msg === "job progress"),
  );
  expect(told?.doing).toContain("no code for it (timer)");
  await using _ours = await the.worker();
  expect(await the.settled("timer_tea")).toBe("resolved");
});
