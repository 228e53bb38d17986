/** The calls of the context through a real worker. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { ownGroup, startWorker } from "../../../testing/worker-process.ts";
import { type Resonate, startResonate } from "../../support/resonate.ts";

const script = "test/worker/scripts/calling-worker.ts";
const { group, namespace, env } = ownGroup();

let resonate: Resonate;
let worker: Awaited<ReturnType<typeof startWorker>>;
beforeAll(async () => {
  resonate = await startResonate();
  worker = await startWorker({ ...resonate.env, ...env }, { script });
});
afterAll(async () => {
  await worker?.[Symbol.asyncDispose]();
  await resonate?.[Symbol.asyncDispose]();
});

test("a job is cancelled by the handle of the one that started it", { timeout: 30_000 }, async () => {
  const id = `${namespace}impatient_1`;
  await resonate.start({ id, func: "impatient", args: { n: 1 }, group });
  expect((await resonate.settled(id)).value.data).toEqual(["late", "nap_1", "cancelled"]);
  expect((await resonate.settled(`${namespace}nap_1`)).state).toBe("rejected_canceled");
});
