import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { RETENTION_TAG } from "../../core/resonate/codec.ts";
import { cleanUpId, isRoot, journalEntryId, limitId, limitSlotId, recordMarkId } from "../../core/resonate/ids.ts";
import { openDatabase } from "../node/database.ts";
import { NodeSql } from "../node/node-sql.ts";
import { Engine } from "./engine.ts";
import { sweep } from "./retention.ts";
import { Store } from "./store.ts";

const DAY_MS = 86_400_000;
const RETENTION_MS = 30 * DAY_MS;
const NOW = Date.now();
const head = { corrId: "1", version: "2026-04-01" };

let dir: string;
let store: Store;
let engine: Engine;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "retention-"));
  store = new Store(new NodeSql(openDatabase(dir).db));
  engine = new Engine(store);
});
afterEach(async () => {
  store.close();
  await rm(dir, { recursive: true });
});

/** Adds a job with a step's record, which ended `endedDaysAgo` days ago, or is pending. */
function job(id: string, endedDaysAgo: number | undefined, tags: Record<string, string> = {}) {
  const at = NOW - (endedDaysAgo ?? 0) * DAY_MS;
  const create = (id: string, tags: Record<string, string>) =>
    engine.apply(at, { kind: "promise.create", head, data: { id, timeoutAt: at + 365 * DAY_MS, param: {}, tags } });
  store.transaction(() => {
    create(id, { "resonate:target": "poll://any@workers", ...tags });
    create(child(id), { "resonate:scope": "global" });
    engine.apply(at, {
      kind: "promise.register_listener",
      head,
      data: { awaited: child(id), address: "poll://uni@edge/1" },
    });
    if (endedDaysAgo !== undefined)
      engine.apply(at, { kind: "promise.settle", head, data: { id, state: "resolved", value: {} } });
  });
}

/** Sweeps all jobs once. */
function sweepAll(now = NOW): void {
  let at: ReturnType<typeof sweep>;
  do store.transaction(() => (at = sweep(store, now, RETENTION_MS, at)));
  while (at);
}

const child = (id: string) => journalEntryId(id, 0);
const link = (n: number) => limitSlotId(limitId("", "archive"), 0, n);

const promises = () => store.ids("promises", "ORDER BY id");

describe("retention", () => {
  test("removes jobs that ended long ago, with their children, and nothing else", () => {
    job("old", 31);
    job("older", 300);
    job("young", 29);
    job("pending", undefined);
    job("old.named", 5); // its name begins with another job's name
    job("ol", 5);
    sweepAll();
    const left = [
      "ol",
      child("ol"),
      "old.named",
      child("old.named"),
      "pending",
      child("pending"),
      "young",
      child("young"),
    ];
    expect(promises()).toEqual(left);
    expect(store.ids("tasks", "ORDER BY id")).toEqual(left.filter((id) => isRoot(id)));
    expect(store.listenerAddresses()).toEqual(["poll://uni@edge/1"]);
  });

  test("keeps a job while the clean-up of one of its generations is pending", () => {
    for (const id of ["trip", "trip~2", "other", "tri", "trip~22"]) job(id, 40);
    const cleanUp = (id: string, daysAgo: number | undefined) => job(cleanUpId(id), daysAgo);
    cleanUp("trip~2", undefined);
    cleanUp("other", undefined);
    cleanUp("tri", 40);
    const kept = () => promises().filter((id) => isRoot(id));
    const forget = (id: string) =>
      engine.apply(NOW, { kind: "promise.forget", head, data: { id } }).response.head.status;
    sweepAll();
    expect(kept()).toEqual(["other", "trip", "trip~2", "trip~22"]);
    expect(["trip", "trip~2", "other"].map(forget)).toEqual([422, 422, 422]);
    const settle = { id: cleanUpId("trip~2"), state: "resolved" as const, value: {} };
    store.transaction(() => engine.apply(NOW, { kind: "promise.settle", head, data: settle }));
    expect(forget("trip")).toBe(200);
    expect(kept()).toEqual(["other"]);
  });

  test("removes all generations of a name together, when the last of them ended long ago", () => {
    job("a", 300);
    job("a~2", 200);
    job("b", 300);
    job("b~2", 3);
    job("c", 300);
    job("c~2", undefined);
    sweepAll();
    expect(promises()).toEqual(["b", child("b"), "b~2", child("b~2"), "c", child("c"), "c~2", child("c~2")]);
  });

  test("keeps a job for the retention that the job itself sets", () => {
    job("forever", 3_000, { [RETENTION_TAG]: "forever" });
    job("long", 50, { [RETENTION_TAG]: String(60 * DAY_MS) });
    job("short", 2, { [RETENTION_TAG]: String(DAY_MS) });
    sweepAll();
    expect(promises()).toEqual(["forever", child("forever"), "long", child("long")]);
  });

  test("gets past any number of kept jobs, and looks at a bounded number at a time", () => {
    for (let n = 0; n < 120; n++) job(`kept${n}`, 100, { [RETENTION_TAG]: "forever" });
    for (let n = 0; n < 120; n++) job(`gone${n}`, 90);
    store.transaction(() => void sweep(store, NOW, RETENTION_MS, undefined));
    expect(promises().length).toBe(480);
    sweepAll();
    expect(promises().every((id) => id.startsWith("kept"))).toBe(true);
    expect(promises().length).toBe(240);
  });

  test("lets a removed job's name be started again", () => {
    job("again", 100);
    sweepAll();
    job("again", undefined);
    expect(store.promise("again")?.state).toBe("pending");
  });

  test("removes the links of limits that are not needed to find the last link", () => {
    const create = (id: string, daysAgo: number) => {
      const at = NOW - daysAgo * DAY_MS;
      const data = { id, timeoutAt: at - 1, param: {}, tags: { "resonate:scope": "global" } };
      engine.apply(at, { kind: "promise.create", head, data });
    };
    store.transaction(() => {
      create(recordMarkId("c."), 3);
      for (let n = 1; n <= 600; n++) create(link(n), n > 590 ? 0 : 2);
    });
    sweepAll();
    const links = promises().filter((id) => id !== recordMarkId("c."));
    // Today's links, and those that lead to them.
    expect(links.length).toBeGreaterThan(10);
    expect(links.length).toBeLessThan(60);
    expect(links).toEqual(expect.arrayContaining([link(1), link(512), link(600)]));
    expect(promises()).toContain(recordMarkId("c."));
  });
});
