import { afterEach, expect, test, vi } from "vitest";
import { BEGIN_TABLE, type CallerRow, type CallerRowPosition } from "../../core/jobs/caller-rows.ts";
import type { ObjectPart, PartHost } from "../../core/jobs/object-part.ts";
import { CALLER_ROLE } from "../../core/resonate/object-address.ts";
import { methodsInRole } from "../../core/resonate/object-calls.ts";
import { ObjectSql } from "../../core/resonate/object-storage.ts";
import { openCallerObject } from "../../test/support/caller-object.ts";
import { createStorage } from "../../test/support/object-storage.ts";
import { openTables } from "../../test/support/open-tables.ts";
import { readRows, writeRows } from "./caller-rows.ts";
import { CallerList } from "./list.ts";
import type { BackupMethods } from "./object.ts";

/** Tables that a backup leaves out: a sum over a caller's rows, and the versions of the tables. */
const DERIVED = ["stored", "schemas"];

// Not on this machine, where the object would follow the job of a restored subscription.
const ENV = { RESONATE_URL: "https://resonate.example.com", AUTH_MODE: "none" };

afterEach(() => void vi.useRealTimers());

test("a backup of a caller has each of its tables, and a repeated restore changes nothing", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const open = () => {
    const storage = createStorage();
    const object = openCallerObject(storage, ENV);
    return { object, backup: methodsInRole<BackupMethods>(object, CALLER_ROLE), sql: new ObjectSql(storage) };
  };
  const { backup, sql } = open();
  await backup.clear();
  const found = sql.all("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
  const insert = (table: string, row: CallerRow["row"]) => ({ caller: "k", table, row });
  const times = { started_at: 1, settled_at: null, due: 2, period: "", count: 0, looked_at: 1, hidden: 0, child: 0 };
  const rows = {
    log: { epoch: "00000000", floor: 0 },
    notes: { name: "key", value: "c0123456789abcdef." },
    jobs: { id: "j", kind: "timer", state: "pending", ...times, bytes: 100 },
    labels: { job: "j", label: "a" },
    unsized: { job: "j", at: 1 },
    firings: { job: "j", schedule: "s" },
    events: { position: 1, id: "e", name: "job.ended", at: 1, logged_at: 1, job: "j", kind: "timer", data: "{}" },
    schedules: { id: "s", next_at: 1, after: 1, running: null, queued: null, firings: "[]" },
    verified: { url: "https://a.example", until: 1 },
    deliveries: { subscription: "x", position: 0, type: "gap", message_id: "m", attempts: 0, next_at: 1 },
    subscriptions: {
      id: "x",
      name: "job.ended",
      url: "https://a.example",
      filter: "{}",
      secret: "s",
      old_secret: null,
      old_until: 0,
      expires_at: 8e15,
      caller: "{}",
      position: "00000000.1",
      active: 1,
      last_delivery_at: null,
      last_error: null,
      failed_since: null,
      failures: 0,
      ended: null,
    },
  };
  expect(found.map(({ name }) => String(name)).sort()).toEqual([...Object.keys(rows), ...DERIVED].sort());
  const lines = [insert(BEGIN_TABLE, {}), ...Object.entries(rows).map(([table, row]) => insert(table, row))];
  await backup.writeRows(lines);
  await backup.writeRows(lines);
  const copy = (await backup.readRows("k", 0, 0)).rows;
  expect(new Set(copy.map(({ table }) => table))).toEqual(new Set([BEGIN_TABLE, ...Object.keys(rows)]));
  const other = open();
  await other.backup.writeRows(copy);
  // The log of each object has its own epoch.
  const withoutEpoch = (lines: readonly CallerRow[]) => JSON.stringify(lines).replace(/"[0-9a-f]{8}([".])/g, '"$1');
  expect(withoutEpoch((await other.backup.readRows("k", 0, 0)).rows)).toBe(withoutEpoch(copy));
  expect([await other.object.stored(), other.sql.all("SELECT id FROM jobs")]).toEqual([100, [{ id: "j" }]]);
  await expect(other.backup.writeRows([insert("stored", {})])).rejects.toThrow();
  await expect(other.backup.writeRows([insert("jobs", { "id; DROP": 1 })])).rejects.toThrow();
});

test("rows are read in pages, and each row once", () => {
  const statements = ["CREATE TABLE texts (text TEXT) STRICT"];
  const part: ObjectPart = { name: "texts", tables: { version: 1, statements, copied: ["texts"] } };
  const hostOf = (): Pick<PartHost, "sql" | "parts" | "clear"> => ({
    sql: openTables([{ version: 1, statements, copied: [] }]),
    parts: [part],
    clear() {},
  });
  const [from, to] = [hostOf(), hostOf()];
  for (let n = 0; n < 1_000; n++) from.sql.all("INSERT INTO texts VALUES (?)", `${n} `.padEnd(10_000, "x"));
  let next: CallerRowPosition | undefined = ["k", 0, 0];
  let pages = 0;
  for (; next; pages++) {
    const page = readRows(from, next);
    writeRows(to, page.rows, 0);
    next = page.next;
  }
  expect(pages).toBeGreaterThan(5);
  const texts = "SELECT text FROM texts ORDER BY rowid";
  expect(to.sql.all(texts)).toEqual(from.sql.all(texts));
});

test.each([0, 1, 49, 50, 51, 120])(
  "a backup has all of %i callers, however little is stored of each",
  async (count) => {
    const readRows = async (caller: string, table: number) => ({
      rows: table === 0 ? [{ caller, table: BEGIN_TABLE, row: {} }] : [],
    });
    const of = () => ({ readRows, writeRows: async () => {}, clear: async () => {} });
    const statements = ["CREATE TABLE callers (key TEXT PRIMARY KEY) STRICT"];
    const { methods: list } = new CallerList(openTables([{ version: 1, statements, copied: [] }]), of);
    const keys = Array.from({ length: count }, (_, n) => (n === 0 ? "" : `c${String(n).padStart(16, "0")}.`));
    for (const key of keys) await list.add(key);
    const found: string[] = [];
    let after: CallerRowPosition | undefined;
    do {
      const page = await list.read(after);
      found.push(...page.rows.map(({ caller }) => caller));
      after = page.next;
    } while (after);
    expect(found).toEqual(keys);
  },
);
