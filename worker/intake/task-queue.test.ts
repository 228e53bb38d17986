import { expect, test } from "vitest";
import { TaskQueue } from "./task-queue.ts";

test("a task is claimed by its newest dispatch, also if an older one is added after that", async () => {
  const claimed: string[] = [];
  let most = 0;
  const queue = new TaskQueue(1, {
    claim: async ({ id, version }) => {
      claimed.push(`${id} ${version}`);
      return undefined;
    },
    run: async () => {},
    most: () => most,
    onWaiting() {},
  });
  for (const version of [0, 2, 1]) queue.add({ id: "tea", version }, "");
  most = 1;
  queue.add({ id: "cake", version: 0 }, "");
  await expect.poll(() => claimed).toEqual(["tea 2", "cake 0"]);
});
