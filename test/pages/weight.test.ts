import { expect, test } from "vitest";
import { filesOf, PAGES, weightOf } from "./weight.ts";

test.each(PAGES)("%s loads its script and style, in total less than 100 KB compressed", async (page) => {
  const files = await filesOf(page);
  expect([...files.keys()]).toEqual(expect.arrayContaining(["style.css", "icon.svg", page.replace(/html$/, "js")]));
  expect(await weightOf(page)).toBeLessThan(100_000);
});

test("only the page of a job loads the code that draws charts", async () => {
  const sizes = await Promise.all(PAGES.map(weightOf));
  expect(Math.max(...sizes)).toBe(sizes[2]);
});
