import { expect, test } from "vitest";
import { ReadRoom } from "./read-room.ts";

/** Reads `count` items of this size, and says how many were under way at once. */
async function readAll(
  count: number,
  characters: number,
  { room, ...options }: { room?: number; isBinding?: boolean } = {},
) {
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
  return { found: await new ReadRoom(room).read(items, read, () => characters, options), items, most: () => most };
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

test("where there is room for sixteen large ones, so many are read at once from the first on", async () => {
  const room = 16_000_000;
  const underWay: number[] = [];
  const items = Array.from({ length: 20 }, (_, n) => n);
  void new ReadRoom(room).read(
    items,
    (n) => new Promise(() => underWay.push(n)),
    () => 0,
  );
  expect(underWay).toEqual(items.slice(0, 16));
  const { found, most } = await readAll(100, 4_000_000, { room });
  expect([found.length, most()]).toEqual([16, 16]);
});

test("what is found is in the order of the items, and a slow one holds up no others", async () => {
  const slow = Promise.withResolvers<number>();
  let read = 0;
  const reading = new ReadRoom().read(
    Array.from({ length: 40 }, (_, n) => n),
    async (n) => {
      read += 1;
      return n === 0 ? slow.promise : n;
    },
    () => 1,
  );
  await expect.poll(() => read).toBe(40);
  slow.resolve(0);
  expect(await reading).toEqual(Array.from({ length: 40 }, (_, n) => n));
});

test("an error ends the reading", async () => {
  const fail = async (n: number) => {
    if (n > 1) throw new Error(`no ${n}`);
    return n;
  };
  await expect(new ReadRoom().read([0, 1, 2, 3, 4], fail, () => 1)).rejects.toThrow("no 2");
});
