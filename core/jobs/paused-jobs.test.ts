import { expect, test } from "vitest";
import type { PromiseRecord } from "../resonate/connection/protocol.ts";
import { PausedJobs } from "./paused-jobs.ts";

test("a worker that outlives the restore of an earlier state finds the pauses of that state, and later ones", async () => {
  const promises = new Map<string, PromiseRecord>();
  const call = async ({ kind, data }: { kind: string; data: PromiseRecord }) => {
    const known = promises.get(data.id);
    if (kind === "promise.create" && !known) promises.set(data.id, { ...data, state: "pending", createdAt: 1 });
    if (kind === "promise.settle" && known) promises.set(data.id, { ...known, state: "resolved" });
    return promises.get(data.id);
  };
  const paused = () => new PausedJobs({ call } as never, "");
  const [operator, worker] = [paused(), paused()];
  for (let n = 0; n < 3; n++) {
    await operator.pause("timer");
    await worker.find("timer");
    await operator.resume("timer");
  }
  expect(await worker.find("timer")).toBeUndefined();
  for (const id of [...promises.keys()].slice(1)) promises.delete(id);
  await operator.pause("timer");
  for (const each of [worker, paused()]) expect(await each.find("timer")).toMatchObject({ state: "pending" });
});
