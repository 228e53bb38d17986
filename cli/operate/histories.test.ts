import { expect, test } from "vitest";
import { fileNameOf } from "./histories.ts";

test("the files of jobs are called like the jobs, and no two jobs have the same file", async () => {
  expect(await fileNameOf("take_order_1")).toBe("take_order_1");
  const jobs = ["a/b", "a b", "a_b", "x".repeat(100), "x".repeat(101), "x".repeat(102)];
  const names = await Promise.all(jobs.map(fileNameOf));
  expect(new Set(names).size).toBe(jobs.length);
  for (const name of names) expect(name).toMatch(/^[\w.~-]{1,120}$/);
});
