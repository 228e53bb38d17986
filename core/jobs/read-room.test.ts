import { expect, test } from "vitest";
import { ReadRoom } from "./read-room.ts";

/** Reads `count` items of this size, and says how many were under way at once. */
async function readAll(count: number, characters: number, options = {}) {
  let underWay = 0;
  let most = 0;
  const read = async (n: number) => {
    underWay += 1;
    most = Math.max(most, underWay);
    await Promise.resolve();
    underWay -= 1;
    return n;
  };
  const items = Array.from({ length: count }, (_, n) => n);
  return { found: await new ReadRoom().read(items, read, () => characters, options), items, most: () => most };
}

test("small jobs are all read, many at once", async () => {
  const { found, items, most } = await readAll(100, 1_000);
  expect([found, most()]).toEqual([items, 16]);
});

test("of a hundred jobs of a megabyte the first few are read", async () => {
  const { found, items, most } = await readAll(100, 1_200_000);
  expect(found).toEqual(items.slice(0, found.length));
  expect([found.length < 8, most()]).toEqual([true, 4]);
});

test("where each has to be read, large ones are read one after another", async () => {
  const { found, items, most } = await readAll(20, 4_000_000, { isBinding: false });
  expect([found, most()]).toEqual([items, 4]);
});
