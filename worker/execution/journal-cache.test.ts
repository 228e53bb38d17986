import { expect, test } from "vitest";
import { Journal } from "../../core/engine/journal.ts";
import { JournalCache } from "./journal-cache.ts";

test("the journal of a job that was removed is not that of a job that is started again under its id", () => {
  const journals = new JournalCache();
  const journal = new Journal();
  const sleep = () => journals.put({ id: "a", createdAt: 1 }, { journal });
  sleep();
  expect(journals.take({ id: "a", createdAt: 1 }).journal).toBe(journal);
  sleep();
  expect(journals.take({ id: "a", createdAt: 2 }).journal).not.toBe(journal);
  expect(journals.take({ id: "a", createdAt: 1 }).journal).not.toBe(journal);
});
