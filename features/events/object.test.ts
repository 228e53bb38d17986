import { expect, test } from "vitest";
import { callerOf } from "../../core/author/index.ts";
import { JOB_OUTPUT } from "../../core/jobs/index.ts";
import { encodeValue } from "../../core/resonate/index.ts";
import { RECORD_TABLES } from "../../functions/objects/job-table.ts";
import { openTables } from "../../test/support/open-tables.ts";
import { eventTables } from "./event-log.ts";
import { EventPart } from "./object.ts";

test("a hundred events with 900 KB each come page by page, each page with a few, all once and in order", async () => {
  const value = encodeValue("x".repeat(900_000));
  let readCount = 0;
  const call = async () => {
    readCount += 1;
    return { param: value, value: {}, state: "resolved", tags: {} };
  };
  const sql = openTables([RECORD_TABLES, eventTables(undefined as never)]);
  const jobs = { labelsOf: () => [], pending: () => [] };
  const record = { key: "", jobs, begin: async () => {}, nameOf: (id: string) => id };
  const nothing = () => {};
  const part = new EventPart({
    ...{ sql, record, client: { call }, feeds: {}, namespace: "", jobs: [], follow: nothing, onNews: nothing },
    ...{ subscribedTypes: () => [], pageOf: async () => undefined },
  } as never);
  part.load();
  const begin = part.log.cursorAt(0);
  for (let n = 1; n <= 100; n++) {
    const data = JSON.stringify({ output: n });
    part.log.append({ id: `output_${n}`, name: JOB_OUTPUT, at: n, job: `report_${n}`, kind: "report", data }, n);
  }
  const caller = await callerOf("ada");
  const seen: string[] = [];
  let cursor = begin;
  for (let hasMore = true; hasMore;) {
    readCount = 0;
    const page = await part.methods.readEvents(caller, { name: JOB_OUTPUT, filter: {}, cursor, limit: 100 } as never);
    seen.push(...page.events.map(({ eventId }) => eventId));
    expect(readCount).toBeLessThan(8);
    ({ cursor, hasMore } = page);
  }
  expect(seen).toEqual(Array.from({ length: 100 }, (_, n) => `output_${n + 1}`));
});
