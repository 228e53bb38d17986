import { expect, test } from "vitest";
import {
  type CoveredFunction,
  commonFunctions,
  count,
  countByFolder,
  listFunctions,
  outsideOfFeatures,
  overBudget,
} from "./count.ts";

/** Each line has ten characters with its end. */
const LINES = "123456789\n".repeat(20);
const read = () => LINES;

/** A function from the first character of a line to the last one of another. */
const covered = (file: string, name: string, first = 1, last = first): CoveredFunction => ({
  file,
  name,
  start: (first - 1) * 10,
  end: last * 10 - 1,
});

test("named functions are counted; anonymous ones count with their lines, class initializers and modules with their files", () => {
  const way = [
    covered("core/jobs/a.ts", "", 1, 20),
    covered("core/jobs/a.ts", "start", 2, 5),
    covered("core/jobs/a.ts", "", 4, 6),
    covered("core/resonate/b.ts", "<static_initializer>", 2),
    covered("core/resonate/c.ts", "", 1, 20),
  ];
  expect(count(way, read)).toEqual({ functions: 1, files: 3, lines: 6 });
});

test("functions of the same name count each, and a line counts once", () => {
  const way = [covered("a.ts", "get", 2, 3), covered("a.ts", "get", 3, 4), covered("b.ts", "get", 2)];
  expect(count(way, read)).toEqual({ functions: 3, files: 2, lines: 4 });
});

test("folders below the second level count with it", () => {
  const way = [
    covered("core/jobs/feed/a.ts", "a", 2),
    covered("core/jobs/b.ts", "b", 2),
    covered("worker/c.ts", "c", 2),
  ];
  expect(Object.fromEntries(countByFolder(way, read))).toEqual({
    "core/jobs": { functions: 2, files: 2, lines: 2 },
    worker: { functions: 1, files: 1, lines: 1 },
  });
});

test("what does not run each time is no part of a way", () => {
  const [a, b, c] = [covered("a.ts", "a"), covered("a.ts", "b", 2), covered("b.ts", "a")];
  expect(
    commonFunctions([
      [a, b, c],
      [c, a],
      [a, b, c],
    ]),
  ).toEqual([a, c]);
});

test("each count over the budget is named, those of features and tools only in the sum", () => {
  const way = [covered("core/a.ts", "a"), covered("features/quota/start.ts", "b"), covered("tools/timer/t.ts", "c")];
  expect(outsideOfFeatures(way)).toEqual([way[0]]);
  const budget = { functions: 3, outside: { functions: 1, files: 1 } };
  expect(overBudget(way, budget, read)).toEqual([]);
  expect(overBudget([...way, covered("worker/w.ts", "d")], budget, read)).toEqual([
    "4 functions, budget 3",
    "2 functions outside of features/ and tools/, budget 1",
    "2 files outside of features/ and tools/, budget 1",
  ]);
});

test("the list has the place and the name of each function, in the order of the code", () => {
  const way = [covered("b.ts", "last", 12), covered("b.ts", "", 3), covered("a.ts", "first", 7)];
  expect(listFunctions(way, read)).toBe("a.ts:7 first\nb.ts:3 (anonymous)\nb.ts:12 last\n");
});
