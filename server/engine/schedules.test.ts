/** Schedules whose promises cannot be stored. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openDatabase } from "../node/database.ts";
import { NodeSql } from "../node/node-sql.ts";
import { Engine } from "./engine.ts";
import { Store } from "./store.ts";

const NOW = Date.UTC(2026, 10, 26, 12);
const MINUTE_MS = 60_000;
const head = { corrId: "1", version: "2026-04-01" };

let dir: string;
let store: Store;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "schedules-"));
  store = new Store(new NodeSql(openDatabase(dir).db));
});
afterEach(() => {
  store.close();
  rmSync(dir, { recursive: true });
});

const schedule = (id: string, options: object = {}) => ({
  id,
  cron: "* * * * *",
  promiseId: "{{.id}}.{{.timestamp}}",
  promiseTimeout: MINUTE_MS,
  promiseParam: {},
  promiseTags: {},
  ...options,
});

test("a schedule whose promises would be too large, or whose times are random, is refused, and one just below the limits fires", () => {
  const engine = new Engine(store);
  const create = (data: ReturnType<typeof schedule>) =>
    store.transaction(() => engine.apply(NOW, { kind: "schedule.create", head, data })).response.head.status;
  const data = (length: number) => ({ promiseParam: { data: "x".repeat(length) } });
  expect(create(schedule("large", data(1_000_000)))).toBe(413);
  expect(create(schedule("\u{20ac}".repeat(400_000), { promiseId: "a" }))).toBe(413);
  expect(create(schedule("x".repeat(1_000), { promiseId: "{{.id}}".repeat(11) }))).toBe(400);
  expect(create(schedule("x".repeat(100_000), { promiseId: "{{.id}}".repeat(100_000) }))).toBe(400);
  expect(create(schedule("hashed", { cron: "H * * * *" }))).toBe(400);
  expect(store.ids("schedules", "")).toEqual([]);
  expect(create(schedule("named", { cron: "0 0 * * THU" }))).toBe(200);
  expect(create(schedule("\u0001".repeat(9_900), data(900_000)))).toBe(200);
  expect(store.transaction(() => engine.tick(NOW + MINUTE_MS)).changes).not.toEqual([]);
  expect(store.ids("promises", "")).toHaveLength(1);
});

test("a schedule that cannot fire, stored before it was refused, is skipped and reported, and everything else falls due", () => {
  const skipped: string[] = [];
  const engine = new Engine(store, undefined, (_error, id) => skipped.push(id));
  store.transaction(() => {
    for (const id of ["a", "c"]) engine.apply(NOW, { kind: "schedule.create", head, data: schedule(id) });
    const tooLarge = { promiseParam: { data: "x".repeat(3_000_000) }, createdAt: NOW, nextRunAt: NOW + MINUTE_MS };
    store.putSchedule({ ...schedule("b"), ...tooLarge });
    const due = { id: "due", timeoutAt: NOW + MINUTE_MS, param: {}, tags: {} };
    engine.apply(NOW, { kind: "promise.create", head, data: due });
  });
  store.transaction(() => engine.tick(NOW + 3 * MINUTE_MS));
  expect(skipped).toEqual(["b"]);
  expect(store.promise("due")?.state).toBe("rejected_timedout");
  expect(store.promise(`a.${NOW + MINUTE_MS}`)?.createdAt).toBe(NOW + MINUTE_MS);
  expect(store.promise(`c.${NOW + MINUTE_MS}`)?.createdAt).toBe(NOW + MINUTE_MS);
  expect(store.schedule("b")?.nextRunAt).toBe(NOW + 4 * MINUTE_MS);
});
