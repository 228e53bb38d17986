import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { RETENTION_TAG } from "../../../core/resonate/codec.ts";
import { cleanUpId, isRoot, journalEntryId, limitId, limitSlotId } from "../../../core/resonate/ids.ts";
import { BATCH_SIZE } from "./database.ts";
import { retainSqlite } from "./retention.ts";

const DAY_MS = 86_400_000;
const now = Date.now();

let dir: string;
let file: string;
let db: DatabaseSync;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "retention-"));
  file = join(dir, "resonate.db");
  db = new DatabaseSync(file);
  // The schema that the server of that release creates.
  db.exec(await readFile(join(import.meta.dirname, "../../../test/fixtures/resonate-0.9.8.sql"), "utf8"));
});
afterEach(async () => {
  db.close();
  await rm(dir, { recursive: true });
});

/** Adds a promise that ended `endedDaysAgo` days ago, or is pending. A job's promise gets a task. */
function promise(id: string, endedDaysAgo: number | undefined, tags: Record<string, string> = {}): void {
  const isJob = isRoot(id) && !("no task" in tags);
  const all = { ...tags, ...(isJob && { "resonate:target": "poll://any@workers" }) };
  db.prepare(
    "INSERT INTO promises (id, state, tags, timeout_at, created_at, settled_at) VALUES (?, ?, ?, ?, 1, ?)",
  ).run(
    id,
    endedDaysAgo === undefined ? "pending" : "resolved",
    JSON.stringify(all),
    now + DAY_MS,
    endedDaysAgo === undefined ? null : now - endedDaysAgo * DAY_MS,
  );
  if (isJob) db.prepare("INSERT INTO tasks (id, state) VALUES (?, 'fulfilled')").run(id);
}

const idsIn = (table: string) =>
  db
    .prepare(`SELECT id FROM ${table} ORDER BY id`)
    .all()
    .map(({ id }) => id);

test("removes jobs that ended long ago, with all their records, but only with `apply`", () => {
  for (const id of ["old", journalEntryId("old", 0), "old~2", journalEntryId("old~2", 0)]) promise(id, 40);
  db.exec("INSERT INTO listeners VALUES ('old', 'poll://uni@edge/1')");
  promise("young", 3);
  promise("failed", 40);
  promise("failed~2", 3);
  promise("pending", undefined);
  promise(journalEntryId("pending", 0), 40);
  promise("forever", 40, { [RETENTION_TAG]: "forever" });
  promise("short", 3, { [RETENTION_TAG]: String(DAY_MS) });
  promise("no job", 40, { "no task": "" });
  const before = idsIn("promises");
  expect(retainSqlite(file, { days: 30, namespace: "", now }, false)).toEqual({ jobs: 2, promises: 5, bookkeeping: 0 });
  expect(idsIn("promises")).toEqual(before);
  expect(retainSqlite(file, { days: 30, namespace: "", now }, true)).toEqual({ jobs: 2, promises: 5, bookkeeping: 0 });
  const remaining = before.filter((id) => !/^(old|short)/.test(String(id)));
  expect(idsIn("promises")).toEqual(remaining);
  expect(idsIn("tasks")).toEqual(["failed", "failed~2", "forever", "pending", "young"]);
  expect(db.prepare("SELECT * FROM listeners").all()).toEqual([]);
});

test("keeps a job while the clean-up of one of its generations is pending", () => {
  for (const id of ["trip", "trip~2", "tri"]) promise(id, 40);
  promise(cleanUpId("trip~2"), undefined);
  promise(cleanUpId("tri"), 40);
  retainSqlite(file, { days: 30, namespace: "", now }, true);
  expect(idsIn("promises")).toEqual(["trip", "trip~2", cleanUpId("trip~2")]);
});

test("removes the links of a limit that do not lead to the last one", () => {
  promise("old", 40);
  promise("young", 3);
  for (let n = 1; n <= 7; n++) promise(limitSlotId(limitId("", "archive"), 0, n), n > 6 ? 0 : 5);
  expect(retainSqlite(file, { days: 30, namespace: "", now }, true)).toEqual({ jobs: 1, promises: 1, bookkeeping: 1 });
  const links = [1, 2, 4, 5, 6, 7].map((n) => limitSlotId(limitId("", "archive"), 0, n));
  expect(idsIn("promises")).toEqual([...links, "young"]);
});

test("keeps a job that is started again while the jobs before it are removed", () => {
  db.exec("BEGIN");
  for (let n = 0; n < BATCH_SIZE; n++) promise(`a${n + BATCH_SIZE}`, 40);
  db.exec("COMMIT");
  for (const id of ["b", journalEntryId("b", 0), "b~2"]) promise(id, 40);
  db.exec(`CREATE TRIGGER restart AFTER DELETE ON promises WHEN old.id = 'a500' BEGIN
    INSERT INTO promises (id, state, tags, timeout_at, created_at) VALUES ('b~3', 'pending', '{}', ${now + DAY_MS}, 1); END`);
  const counts = { jobs: BATCH_SIZE, promises: BATCH_SIZE, bookkeeping: 0 };
  expect(retainSqlite(file, { days: 30, namespace: "", now }, true)).toEqual(counts);
  expect(idsIn("promises")).toEqual(["b", journalEntryId("b", 0), "b~2", "b~3"]);
});

test("leaves other namespaces alone", () => {
  for (const id of ["prod/a", journalEntryId("prod/a", 0), "test/a"]) promise(id, 40);
  retainSqlite(file, { days: 30, namespace: "prod/", now }, true);
  expect(idsIn("promises")).toEqual(["test/a"]);
});

test("changes nothing in a database with an unknown schema", () => {
  promise("old", 40);
  db.exec("ALTER TABLE tasks ADD COLUMN more TEXT");
  expect(() => retainSqlite(file, { days: 30, namespace: "", now }, true)).toThrow("its table tasks differs");
  expect(idsIn("promises")).toEqual(["old"]);
});
