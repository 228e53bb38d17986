import { expect, test } from "vitest";
import type { LeaseRef } from "../../core/resonate/connection/protocol.ts";
import { TaskQueue } from "./task-queue.ts";

test("a dispatch that is added again later does not take the place of a newer one", async () => {
  const claimed: string[] = [];
  let maxClaimed = 0;
  const handler = {
    claim: async ({ id, version }: LeaseRef) => {
      claimed.push(`${id} ${version}`);
      return undefined;
    },
    run: async () => {},
    get maxClaimed() {
      return maxClaimed;
    },
  };
  const queue = new TaskQueue("tea", 1, handler, async () => {});
  for (const version of [0, 2]) queue.add({ id: "tea", version }, "");
  queue.add({ id: "tea", version: 1 }, "", true);
  maxClaimed = 1;
  queue.add({ id: "cake", version: 0 }, "");
  await expect.poll(() => claimed).toEqual(["tea 2", "cake 0"]);
});
