import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { KEEP } from "../../core/resonate/codec.ts";
import { retainSqlite } from "./retention.ts";

const DAY = 86_400_000;
const now = Date.now();

let dir: string;
let file: string;
let db: DatabaseSync;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "retention-"));
  file = join(dir, "resonate.db");
  db = new DatabaseSync(file);
  // As the server of that release makes it.
  db.exec(await readFile(join(import.meta.dirname, "../../test/fixtures/resonate-0.9.8.sql"), "utf8"));
});
afterEach(async () => {
  db.close();
  await rm(dir, { recursive: true });
});

/** A promise that ended so many days ago, or has not; with a task where it is a job's. */
function promise(id: string, endedDaysAgo: number | undefined, tags: Record<string, string> = {}): void {
  const isJob = !id.includes(":") && !("no task" in tags);
  const all = { ...tags, ...(isJob && { "resonate:target": "poll://any@workers" }) };
  db.prepare(
    "INSERT INTO promises (id, state, tags, timeout_at, created_at, settled_at) VALUES (?, ?, ?, ?, 1, ?)",
  ).run(
    id,
    endedDaysAgo === undefined ? "pending" : "resolved",
    JSON.stringify(all),
    now + DAY,
    endedDaysAgo === undefined ? null : now - endedDaysAgo * DAY,
  );
  if (isJob) db.prepare("INSERT INTO tasks (id, state) VALUES (?, 'fulfilled')").run(id);
}

const left = (table: string) =>
  db
    .prepare(`SELECT id FROM ${table} ORDER BY id`)
    .all()
    .map(({ id }) => id);

test("removes jobs that ended long ago, with all that is theirs, when it is told to", () => {
  for (const id of ["old", "old:e0", "old~2", "old~2:e0"]) promise(id, 40);
  db.exec("INSERT INTO listeners VALUES ('old', 'poll://uni@edge/1')");
  promise("young", 3);
  promise("failed", 40);
  promise("failed~2", 3);
  promise("pending", undefined);
  promise("pending:e0", 40);
  promise("forever", 40, { [KEEP]: "forever" });
  promise("short", 3, { [KEEP]: String(DAY) });
  promise("no job", 40, { "no task": "" });
  const before = left("promises");
  expect(retainSqlite(file, { days: 30, namespace: "", now }, false)).toEqual({ jobs: 2, promises: 5 });
  expect(left("promises")).toEqual(before);
  expect(retainSqlite(file, { days: 30, namespace: "", now }, true)).toEqual({ jobs: 2, promises: 5 });
  const kept = before.filter((id) => !/^(old|short)/.test(String(id)));
  expect(left("promises")).toEqual(kept);
  expect(left("tasks")).toEqual(["failed", "failed~2", "forever", "pending", "young"]);
  expect(db.prepare("SELECT * FROM listeners").all()).toEqual([]);
});

test("leaves other namespaces alone", () => {
  for (const id of ["prod/a", "prod/a:e0", "test/a"]) promise(id, 40);
  retainSqlite(file, { days: 30, namespace: "prod/", now }, true);
  expect(left("promises")).toEqual(["test/a"]);
});

test("touches nothing where the schema is not the one that it knows", () => {
  promise("old", 40);
  db.exec("ALTER TABLE tasks ADD COLUMN more TEXT");
  expect(() => retainSqlite(file, { days: 30, namespace: "", now }, true)).toThrow("its table tasks differs");
  expect(left("promises")).toEqual(["old"]);
});
