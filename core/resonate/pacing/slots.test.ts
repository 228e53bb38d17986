import PQueue from "p-queue";
import { expect, test } from "vitest";
import { Turns } from "./slots.ts";

/** Notes that a task begins. */
function begun<T>(turns: Turns, priority: number, task: T): T {
  turns.began(priority);
  return task;
}

/** The order in which a queue of `concurrency` runs the owners' tasks. */
async function order(concurrency: number, queued: readonly string[]): Promise<string[]> {
  const queue = new PQueue({ concurrency, autoStart: false });
  const turns = new Turns();
  const done: string[] = [];
  for (const owner of queued) {
    const priority = turns.next(owner);
    void queue.add(async () => void done.push(begun(turns, priority, owner)), { priority });
  }
  await queue.start().onIdle();
  return done;
}

test("a task waits for at most one task of each other owner, however many they queued before", async () => {
  const many = (owner: string) => Array.from({ length: 100 }, () => owner);
  const done = await order(1, [...many("ada"), ...many("bob"), "cy"]);
  expect(done.indexOf("cy")).toBeLessThan(3);
  expect(done.slice(0, 21).filter((owner) => owner === "bob").length).toBe(10);
});

test("an owner's tasks run in the order in which they were queued", async () => {
  const queue = new PQueue({ concurrency: 1, autoStart: false });
  const turns = new Turns();
  const done: number[] = [];
  for (let n = 0; n < 20; n++) {
    const priority = turns.next("ada");
    void queue.add(async () => void done.push(begun(turns, priority, n)), { priority });
  }
  await queue.start().onIdle();
  expect(done).toEqual(Array.from({ length: 20 }, (_, n) => n));
});

test("an owner that comes late is not compensated for the turns that others had before", async () => {
  const queue = new PQueue({ concurrency: 1 });
  const turns = new Turns();
  const done: string[] = [];
  const add = (owner: string) => {
    const priority = turns.next(owner);
    return queue.add(async () => void done.push(begun(turns, priority, owner)), { priority });
  };
  for (let n = 0; n < 50; n++) await add("ada");
  queue.pause();
  const all = [...Array.from({ length: 5 }, () => add("bob")), ...Array.from({ length: 5 }, () => add("ada"))];
  queue.start();
  await Promise.all(all);
  expect(done.slice(50, 54).sort()).toEqual(["ada", "ada", "bob", "bob"]);
});
