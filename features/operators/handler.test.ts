import { expect, test } from "vitest";
import { openTables } from "../../test/support/open-tables.ts";
import { operate } from "./handler.ts";
import type { OperatorOptions } from "./options.ts";
import { OPERATE_TABLES, OperateTables } from "./tables.ts";

test.each([
  ["", 100],
  ["limit=2", 2],
  ["limit=5000", 1_000],
  ["limit=-1", 0],
  ["limit=many", 100],
  ["after=1200&limit=-5", 0],
])("of 1,500 entries of the audit log a request with %j reads %i", async (query, count) => {
  const tables = new OperateTables(openTables([OPERATE_TABLES]));
  tables.transaction(() => {
    for (let n = 0; n < 1_500; n++) tables.audit.note("ada", "retry", {});
  });
  const operators = () => ({ auditLog: async (page: object) => tables.audit.page(page) });
  const options = { operators, variables: { OPERATE: "local" } } as unknown as OperatorOptions;
  const answer = await operate(new Request(`http://localhost/operate/audit-log?${query}`), options);
  expect(((await answer.json()) as { entries: object[] }).entries.length).toBe(count);
});
