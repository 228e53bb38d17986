import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { callerOf } from "../../../core/author/caller.ts";
import { isRoot, journalEntryId, recordMarkId, startRecordId } from "../../../core/resonate/ids.ts";
import { openDatabase } from "../../../server/node/database.ts";
import { forget } from "./forget.ts";

const NAMESPACE = "prod/";
const { key } = await callerOf("ada");
const { key: other } = await callerOf("bob");

/** The ids of Ada's promises, and of other promises. */
const ADAS_IDS = [
  `${key}timer_tea`,
  journalEntryId(`${key}timer_tea`, 0),
  `${key}timer_tea~2`,
  recordMarkId(key),
  startRecordId("weather_data_1", key),
].map((id) => NAMESPACE + id);
const OTHER_IDS = [
  ...[`${other}timer_tea`, recordMarkId(other), "weather_data_1", startRecordId("weather_data_1", other)].map(
    (id) => NAMESPACE + id,
  ),
  `test/${key}timer_tea`,
].sort();

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "forget-"));
});
afterEach(() => rm(dir, { recursive: true }));

const idsIn = (db: DatabaseSync, table: string) =>
  db
    .prepare(`SELECT id FROM ${table} ORDER BY id`)
    .all()
    .map(({ id }) => id);

describe.each(["a standalone server", "the embedded one"])("the data of a caller in the database of %s", (server) => {
  const isEmbedded = server === "the embedded one";

  function open(): DatabaseSync {
    return isEmbedded ? openDatabase(dir).db : new DatabaseSync(join(dir, "resonate.db"));
  }

  async function fill(): Promise<void> {
    const db = open();
    // The schema that the server of that release creates.
    const schema = join(import.meta.dirname, "../../../test/fixtures/resonate-0.9.8.sql");
    if (!isEmbedded) db.exec(await readFile(schema, "utf8"));
    const [promise, task] = isEmbedded
      ? [
          "INSERT INTO promises VALUES (?, 'pending', '{}', '{}', '{}', NULL, 9, 1, NULL, NULL)",
          "0, NULL, NULL, '[]', NULL, NULL, NULL",
        ]
      : ["INSERT INTO promises (id, timeout_at, created_at) VALUES (?, 9, 1)", "0"];
    for (const id of [...ADAS_IDS, ...OTHER_IDS]) {
      db.prepare(promise ?? "").run(id);
      if (isRoot(id)) db.prepare(`INSERT INTO tasks VALUES (?, 'pending', ${task})`).run(id);
      db.prepare("INSERT INTO listeners VALUES (?, 'poll://uni@edge/1')").run(id);
    }
    // Ada's job waits for a shared job.
    const columns = isEmbedded ? "(awaited, awaiter)" : "(awaited_id, awaiter_id)";
    db.prepare(`INSERT INTO callbacks ${columns} VALUES (?, ?)`).run(`${NAMESPACE}weather_data_1`, ADAS_IDS[0] ?? "");
    db.close();
  }

  const source = () => (isEmbedded ? { data: dir } : { sqlite: join(dir, "resonate.db") });

  test("is removed with its tasks, listeners and callbacks, but only with `apply`", async () => {
    await fill();
    const ada = { caller: "ada", namespace: NAMESPACE };
    expect(await forget(ada, source(), false)).toBe(ADAS_IDS.length);
    expect(await forget(ada, source(), true)).toBe(ADAS_IDS.length);
    expect(await forget(ada, source(), true)).toBe(0);
    const db = open();
    expect(idsIn(db, "promises")).toEqual(OTHER_IDS);
    expect(idsIn(db, "tasks")).toEqual(OTHER_IDS.filter((id) => isRoot(id)));
    const counts = ["listeners", "callbacks"].map((table) => db.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.n);
    expect(counts).toEqual([OTHER_IDS.length, 0]);
    db.close();
  });

  test("is found by the name that the log gives to the caller of an OAuth token", async () => {
    await fill();
    const caller = key.slice(1, -1);
    expect(await forget({ caller, namespace: NAMESPACE }, source(), false)).toBe(ADAS_IDS.length);
  });

  test("is not looked for in a missing file", async () => {
    await expect(forget({ caller: "ada", namespace: "" }, source(), true)).rejects.toThrow("There is no ");
  });
});

test("forget refuses the data of an embedded server that runs", async () => {
  const { db } = openDatabase(dir);
  const result = forget({ caller: "ada", namespace: "" }, { data: dir }, true);
  await expect(result).rejects.toThrow("in use by another Resonate server");
  db.close();
});
