/** A log of ten thousand events: pages, filters, and the removal of old events. */
import { expect, test } from "vitest";
import { RECORD_TABLES } from "../../functions/objects/job-table.ts";
import { openTables } from "../../test/support/open-tables.ts";
import { EVENT_RETENTION_MS, EventLog, eventTables } from "./event-log.ts";

const COUNT = 10_000;
const NAME = "job.ended";

function filled() {
  const sql = openTables([RECORD_TABLES, eventTables({} as never)]);
  const log = new EventLog(sql);
  log.open();
  const begin = log.read({ name: NAME, cursor: null, limit: 1 }, 0).cursor;
  sql.transaction(() => {
    for (let n = 0; n < COUNT; n++) {
      const event = { id: `e${n}`, name: NAME, at: n, job: `job_${n}`, kind: `kind_${n % 10}`, data: "{}" };
      expect(log.append(event, n)).toBe(true);
      if (n % 1_000 === 0) expect(log.append(event, n)).toBe(false);
    }
  });
  return { log, begin, sql };
}

test("each event is read once and in order, page by page, also from a log that was opened again", () => {
  const { log, begin, sql } = filled();
  const seen: string[] = [];
  let cursor = begin;
  for (let hasMore = true; hasMore;) {
    const reader = seen.length % 2 === 0 ? log : new EventLog(sql);
    const page = reader.read({ name: NAME, cursor, limit: 997 }, COUNT);
    seen.push(...page.events.map(({ id }) => id));
    expect(page.truncated).toBe(false);
    ({ cursor, hasMore } = page);
  }
  expect(seen).toEqual(Array.from({ length: COUNT }, (_, n) => `e${n}`));
  const narrowed = log.read(
    { name: NAME, cursor: begin, kinds: ["kind_3"], jobs: ["job_13", "job_14"], limit: 10 },
    COUNT,
  );
  expect(narrowed.events.map(({ id }) => id)).toEqual(["e13"]);
});

test("old events are dropped, a bounded number at a time, and earlier cursors are answered as truncated", () => {
  const { log, begin } = filled();
  const middle = log.read({ name: NAME, cursor: begin, limit: 5_000 }, COUNT).cursor;
  const now = EVENT_RETENTION_MS + 5_000;
  let times = 1;
  while (log.prune(now)) times += 1;
  expect(times).toBe(6);
  expect(log.read({ name: NAME, cursor: begin, limit: 1 }, now)).toMatchObject({ truncated: true, hasMore: true });
  const rest = log.read({ name: NAME, cursor: middle, limit: COUNT }, now);
  expect([rest.truncated, rest.events.length]).toEqual([false, 5_000]);
  while (log.prune(2 * EVENT_RETENTION_MS));
  expect(log.read({ name: NAME, cursor: rest.cursor, limit: 1 }, now)).toMatchObject({ truncated: false, events: [] });
});

test("a reader with a narrow filter goes through a bounded number of events at a time, and finds all that match", () => {
  const { log, begin } = filled();
  const query = { name: NAME, jobs: ["job_42", "job_9999"], limit: 10 };
  const seen: string[] = [];
  let [cursor, looks] = [begin, 0];
  for (let hasMore = true; hasMore; looks++) {
    const page = log.read({ ...query, cursor }, COUNT);
    seen.push(...page.events.map(({ id }) => id));
    ({ cursor, hasMore } = page);
  }
  expect(seen).toEqual(["e42", "e9999"]);
  expect(looks).toBe(2);
});
