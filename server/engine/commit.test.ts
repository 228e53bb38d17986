import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { promise } from "../../test/contract/server.ts";
import { openDatabase } from "../node/database.ts";
import { NodeSql } from "../node/node-sql.ts";
import { TimedResonate } from "../node/timed-resonate.ts";
import { Store } from "./store.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "resonate-"));
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(dir, { recursive: true });
});

const head = { corrId: "1", version: "2026-04-01" };
const log = pino({ level: "silent" });
const create = (resonate: TimedResonate, id: string) =>
  resonate.submit({ kind: "promise.create", head, data: promise(id, { group: "g" }) });
const status = async (resonate: TimedResonate, id: string) =>
  (await resonate.submit({ kind: "promise.get", head, data: { id } })).head.status;

test("a request that fails half-way leaves no changes, and other requests of the same commit succeed", async () => {
  class Failing extends Store {
    override putTask(...row: Parameters<Store["putTask"]>): void {
      if (row[0].id === "bad") throw new Error("as if the disk had refused this row");
      super.putTask(...row);
    }
  }
  const resonate = new TimedResonate(new Failing(new NodeSql(openDatabase(dir).db)), log);
  const answers = await Promise.all(["a", "bad", "b"].map((id) => create(resonate, id)));
  expect(answers.map(({ head }) => head.status)).toEqual([200, 500, 200]);
  expect([await status(resonate, "a"), await status(resonate, "bad"), await status(resonate, "b")]).toEqual([
    200, 404, 200,
  ]);
  resonate.close();
});

test("on a full disk, exactly the acknowledged requests are stored, and requests succeed again when there is room", async () => {
  const { db } = openDatabase(dir);
  vi.useFakeTimers({ toFake: ["Date"] });
  const logLines: string[] = [];
  const resonate = new TimedResonate(new Store(new NodeSql(db)), pino({}, { write: (line) => logLines.push(line) }));
  const { page_count } = db.prepare("PRAGMA page_count").get() as { page_count: number };
  db.exec(`PRAGMA max_page_count = ${page_count + 20}`);
  const statuses = new Map<string, number>();
  for (let n = 0; n < 200; n++) {
    const ids = [`${n}a`, `${n}b`, `${n}c`];
    for (const [i, { head }] of (await Promise.all(ids.map((id) => create(resonate, id)))).entries()) {
      statuses.set(ids[i] as string, head.status);
    }
  }
  expect(new Set(statuses.values())).toEqual(new Set([200, 500]));
  // Many requests have failed at the same time, with one log line; a later failure is logged again.
  expect([...statuses.values()].filter((each) => each === 500).length).toBeGreaterThan(20);
  const failure = { level: 50, msg: "nothing was written", err: { message: "database or disk is full" } };
  expect(logLines.map((line) => JSON.parse(line))).toMatchObject([failure]);
  vi.setSystemTime(Date.now() + 60_000);
  expect((await create(resonate, "still")).head.status).toBe(500);
  expect(logLines.map((line) => JSON.parse(line))).toMatchObject([failure, failure]);
  db.exec("PRAGMA max_page_count = 1000000");
  for (const [id, answered] of statuses) expect(await status(resonate, id)).toBe(answered === 200 ? 200 : 404);
  expect((await create(resonate, "later")).head.status).toBe(200);
  resonate.close();
});
