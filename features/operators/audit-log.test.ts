import { expect, test } from "vitest";
import { openTables } from "../../test/support/open-tables.ts";
import { OPERATE_TABLES, OperateTables } from "./tables.ts";

test("a caller who calls without end pushes out its own entries of that kind alone", () => {
  const { audit } = new OperateTables(openTables([OPERATE_TABLES]));
  audit.note("ada", "retry", {});
  audit.noteCall("bob", "cancel_job", { jobs: "tea" });
  audit.noteCall("ada", "answer_question", { jobs: "tea" });
  for (let n = 0; n < 1_200; n++) audit.noteCall("ada", "cancel_job", { n });
  const entries = audit.page({ limit: 5_000 });
  const of = (who: string, what: string) => entries.filter((entry) => entry.who === who && entry.what === what).length;
  expect(of("ada", "cancel_job")).toBe(1_000);
  expect([of("ada", "retry"), of("bob", "cancel_job"), of("ada", "answer_question")]).toEqual([1, 1, 1]);
});
