import { expect, test } from "vitest";
import { ObjectSql } from "../../core/resonate/object-storage.ts";
import { JobTable } from "../../functions/objects/job-table.ts";
import { createStorage } from "../../testing/stack/object-storage.ts";
import { ROOMS_TABLE, RoomList, type RoomPosition, readRoom, TABLES, writeRoom } from "./room-rows.ts";

/** Tables that a backup leaves out: a sum over a caller's rows, the list of callers' objects, and the version of the tables. */
const DERIVED = ["stored", "rooms", "schemas"];

test("a backup of a caller has each of its tables, and a repeated restore changes nothing", () => {
  const make = () => {
    const sql = new ObjectSql(createStorage());
    const jobs = new JobTable(sql);
    sql.all("INSERT INTO log VALUES ('00000000', 0)");
    const write = (rows: Parameters<typeof writeRoom>[1]) => writeRoom(sql, rows, 0, () => jobs.clear());
    return { sql, jobs, write };
  };
  const { sql, jobs } = make();
  const found = sql.all("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
  const names = found.map(({ name }) => String(name));
  expect(names.sort()).toEqual([...TABLES, ...DERIVED].sort());

  jobs.set("key", "c0123456789abcdef.");
  const times = { started_at: 1, settled_at: null, due: 2, period: "", count: 0, looked_at: 1, hidden: 0, child: 0 };
  const row = { id: "j", kind: "timer", state: "pending", ...times, bytes: 100 };
  const other = make();
  const { rows } = readRoom(sql, ["k", 0, 0]);
  const all = [...rows, { room: "k", table: "jobs" as const, row }];
  other.write(all);
  other.write(all);
  expect([other.jobs.stored, other.jobs.pending(9), other.jobs.get("key")]).toEqual([100, ["j"], jobs.get("key")]);
  expect(() => other.write([{ room: "k", table: "rooms" as "jobs", row: {} }])).toThrow("has no table");
});

test.each([0, 1, 49, 50, 51, 120])(
  "a backup has all of %i callers, however little is stored of each",
  async (count) => {
    const sql = new ObjectSql(createStorage());
    sql.all(ROOMS_TABLE);
    const rows = async (room: string, table: number) => ({
      rows: table === 0 ? [{ room, table: "log" as const, row: { floor: 0 } }] : [],
    });
    const list = new RoomList(sql, () => ({ rows, restore: async () => {}, clear: async () => {} }));
    const keys = Array.from({ length: count }, (_, n) => (n === 0 ? "" : `c${String(n).padStart(16, "0")}.`));
    for (const key of keys) list.add(key);
    const found: string[] = [];
    let after: RoomPosition | undefined;
    do {
      const page = await list.read(after);
      found.push(...page.rows.map(({ room }) => room));
      after = page.next;
    } while (after);
    expect(found).toEqual(keys);
  },
);
