/** Runs the scripts that `retention` and `forget` write for Postgres, on the schema of the standalone server. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { callerOf } from "../../../core/author/caller.ts";
import { RETENTION_TAG } from "../../../core/resonate/codec.ts";
import {
  cleanUpId,
  isRoot,
  journalEntryId,
  limitId,
  limitSlotId,
  recordMarkId,
  startRecordId,
} from "../../../core/resonate/ids.ts";
import { hasPostgres, type Postgres, startPostgres } from "../../../test/support/postgres.ts";
import { BATCH_SIZE } from "./database.ts";
import { postgresScript as forgetScript } from "./forget.ts";
import { postgresScript as retentionScript } from "./retention.ts";

const DAY_MS = 86_400_000;
const now = Date.now();
const schema = readFileSync(join(import.meta.dirname, "../../../test/fixtures/resonate-0.9.8-postgres.sql"), "utf8");

describe.skipIf(!hasPostgres)("on Postgres", () => {
  let postgres: Postgres;
  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterAll(() => postgres?.[Symbol.asyncDispose]());
  beforeEach(() =>
    postgres.psql(`DROP SCHEMA public CASCADE; CREATE SCHEMA public; SET search_path = public; ${schema}`),
  );

  /** The inserts to run with the next script, since each run of `psql` starts a process. */
  let inserts = "";
  const psql = (script: string) => {
    const before = inserts;
    inserts = "";
    return postgres.psql(before + script);
  };

  /** Adds a promise with a listener, which ended `endedDaysAgo` days ago, or is pending. A job's promise gets a task. */
  function promise(id: string, endedDaysAgo: number | undefined, tags: Record<string, string> = {}): void {
    const isJob = !/:/.test(id);
    const all = JSON.stringify({ ...tags, ...(isJob && { "resonate:target": "poll://any@workers" }) });
    const [state, end] = endedDaysAgo === undefined ? ["pending", "NULL"] : ["resolved", now - endedDaysAgo * DAY_MS];
    inserts += `INSERT INTO promises (id, state, tags, timeout_at, created_at, settled_at)
      VALUES ('${id}', '${state}', '${all}', ${now + DAY_MS}, 1, ${end});
      INSERT INTO listeners VALUES ('${id}', 'poll://uni@edge/1');
      ${isJob ? `INSERT INTO tasks (id, state) VALUES ('${id}', 'fulfilled');` : ""}`;
  }

  const idsIn = (table: string, column = "id") =>
    psql(`SELECT ${column} FROM ${table} ORDER BY ${column} COLLATE "C"`).trim().split("\n");

  test("retention removes jobs that ended long ago with all their records, and obsolete bookkeeping", () => {
    for (const id of ["p/old", journalEntryId("p/old", 0), "p/old~2", journalEntryId("p/old~2", 0)]) promise(id, 40);
    promise("p/young", 3);
    promise("p/failed", 40);
    promise("p/failed~2", 3);
    promise("p/pending", undefined);
    promise("p/undone", 40);
    promise(cleanUpId("p/undone"), undefined);
    promise("p/forever", 40, { [RETENTION_TAG]: "forever" });
    promise("p/short", 3, { [RETENTION_TAG]: String(DAY_MS) });
    promise("q/old", 40);
    promise(recordMarkId("p/c."), 40);
    for (let n = 1; n <= 7; n++) promise(limitSlotId(limitId("p/", "archive"), 0, n), n > 6 ? 0 : 5);
    const before = idsIn("promises");
    const retention = { days: 30, namespace: "p/", now };
    expect(psql(retentionScript(retention, false))).toMatch(/^2\|5\|1\nnothing was removed/);
    expect(idsIn("promises")).toEqual(before);
    expect(psql(retentionScript(retention, true))).toMatch(/^2\|5\|1\nremoved/);
    // Links 1, 2, 4, 5 and 6 lead to the last of seven.
    const removedId = limitSlotId(limitId("p/", "archive"), 0, 3);
    const remaining = before.filter((id) => !/^p\/(old|short)/.test(id) && id !== removedId);
    expect(idsIn("promises")).toEqual(remaining);
    expect(idsIn("tasks")).toEqual(remaining.filter((id) => isRoot(id)));
    expect(idsIn("listeners", "promise_id")).toEqual(remaining);
  });

  test("retention keeps a job that is started again while the jobs before it are removed", () => {
    for (let n = 0; n < BATCH_SIZE; n++) promise(`a${n + BATCH_SIZE}`, 40);
    for (const id of ["b", journalEntryId("b", 0), "b~2"]) promise(id, 40);
    inserts += `CREATE FUNCTION restart() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO promises (id, state, tags, timeout_at, created_at) VALUES ('b~3', 'pending', '{}', ${now + DAY_MS}, 1)
          ON CONFLICT DO NOTHING;
        RETURN NULL;
      END $$;
      CREATE TRIGGER restart AFTER DELETE ON promises EXECUTE FUNCTION restart();`;
    expect(psql(retentionScript({ days: 30, namespace: "", now }, true))).toMatch(
      `${BATCH_SIZE}|${BATCH_SIZE}|0\nremoved`,
    );
    expect(idsIn("promises")).toEqual(["b", journalEntryId("b", 0), "b~2", "b~3"]);
  });

  test("forget removes a caller's promises, and nothing else", async () => {
    const [{ key: hers }, { key: his }] = [await callerOf("ada"), await callerOf("bob")];
    const own = [
      `${hers}timer_tea`,
      journalEntryId(`${hers}timer_tea`, 0),
      recordMarkId(hers),
      startRecordId("weather_data_1", hers),
    ];
    const others = [`${his}timer_tea`, "weather_data_1", startRecordId("weather_data_1", his)];
    for (const id of [...own, ...others]) promise(`p/${id}`, undefined);
    promise(`q/${hers}timer_tea`, undefined);
    const script = (apply: boolean) => forgetScript({ caller: "ada", namespace: "p/" }, apply);
    expect(psql(await script(false))).toMatch(/^4\nnothing was removed/);
    expect(idsIn("promises").length).toBe(8);
    expect(psql(await script(true))).toMatch(/^4\nremoved/);
    expect(idsIn("promises")).toEqual([...others.map((id) => `p/${id}`), `q/${hers}timer_tea`].sort());
    expect(idsIn("listeners", "promise_id").length).toBe(4);
  });

  test("both change nothing in a database with an unknown schema", async () => {
    promise("p/old", 40);
    psql("ALTER TABLE tasks ADD COLUMN more TEXT");
    for (const script of [
      retentionScript({ days: 30, namespace: "", now }, true),
      await forgetScript({ caller: "ada", namespace: "" }, true),
    ])
      expect(() => psql(script)).toThrow("its table tasks differs");
    expect(idsIn("promises")).toEqual(["p/old"]);
  });
});
