import { expect, test } from "vitest";
import { ResultTooLarge, readResult } from "./read-result.ts";

const RESULT = { words: ["one", "two", "three"] };

/** Answers with parts of ten characters, as the tool `probe_status` does. */
const inParts = async ({ offset = 0 }: { offset?: number }) => {
  const part = JSON.stringify(RESULT).slice(offset, offset + 10);
  const isLast = part.length < 10;
  return { statuses: [{ summary: { part, ...(!isLast && { next_offset: offset + 10 }) } }] };
};

test("a result that fits into one answer is read at once, and a larger one in parts", async () => {
  const once = async () => ({ statuses: [{ status: "complete", result: RESULT }] });
  expect(await readResult(once, { job: "a" })).toEqual(RESULT);
  expect(await readResult(inParts, { job: "a" })).toEqual(RESULT);
  await expect(readResult(inParts, { job: "a", maxParts: 2 })).rejects.toThrow(ResultTooLarge);
});
