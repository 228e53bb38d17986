/** When a caller's jobs and their progress feeds are looked at. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { SettlementSource } from "../../core/jobs/endpoint.ts";
import { feedEntryId } from "../../core/store/ids.ts";
import { Watch } from "./watch.ts";

const MINUTE = 60_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("a progress entry that is pushed while only ends are wanted is read once progress is wanted again", async () => {
  let push = (_news: { id: string }) => {};
  const source: SettlementSource = {
    open: async ({ onNews }) => {
      push = onNews;
      return { address: "poll://uni@edge/1", closed: new Promise(() => {}), add: async () => {} };
    },
  };
  const readFeed = vi.fn(async () => {});
  const listen = async (id: string) => ({ id, createdAt: Date.now(), timeoutAt: Date.now() + 60 * MINUTE });
  const jobs = { leastSeen: () => [], pending: () => ["job"] };
  const watch = new Watch({ source, key: () => "", jobs, looks: { lookAt: async () => [], listen, readFeed } });
  watch.extend(Date.now() + MINUTE, true);
  watch.extend(Date.now() + 10 * MINUTE, false);
  await vi.advanceTimersByTimeAsync(2 * MINUTE);
  expect(readFeed).toHaveBeenCalledTimes(1);
  push({ id: feedEntryId("job", 1) });
  await vi.advanceTimersByTimeAsync(MINUTE);
  expect(readFeed).toHaveBeenCalledTimes(1);
  watch.extend(Date.now() + MINUTE, true);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(readFeed).toHaveBeenCalledTimes(2);
  await vi.advanceTimersByTimeAsync(20 * MINUTE);
});
