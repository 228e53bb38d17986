import { expect, test } from "vitest";
import { Journal } from "../../core/engine/journal.ts";
import { jobTask } from "../../test/support/job-run.ts";
import { JournalCache } from "./journal-cache.ts";

test("the journal of a job that was removed is not that of a job that is started again under its id", async () => {
  const journals = new JournalCache();
  const journal = new Journal();
  const sleep = () => journals.put({ id: "a", createdAt: 1 }, { journal });
  const read = async (createdAt: number) => (await journals.read(jobTask({ promise: { id: "a", createdAt } }))).journal;
  sleep();
  expect(await read(1)).toBe(journal);
  sleep();
  expect(await read(2)).not.toBe(journal);
  expect(await read(1)).not.toBe(journal);
});
