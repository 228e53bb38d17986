// The engine reads and writes only the rows that a request touches. These tests run it beside the state machine in memory, on
// random histories with restarts: every answer, every message and the whole state must be the same.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { history, type Step } from "../../test/server/histories.ts";
import { openDatabase } from "../node/database.ts";
import { NodeSql } from "../node/node-sql.ts";
import { Engine } from "./engine.ts";
import { MemoryState } from "./memory-state.ts";
import type { Change } from "./records.ts";
import { carryOut, handleDue } from "./state-machine.ts";
import { Store } from "./store.ts";

test("answers, messages and state equal those of the state machine in memory, across restarts", () => {
  const statuses = new Set<string>();
  fc.assert(
    fc.property(history, (steps) => {
      const dir = mkdtempSync(join(tmpdir(), "resonate-"));
      try {
        sideBySide(dir, steps, statuses);
      } finally {
        rmSync(dir, { recursive: true });
      }
    }),
    { numRuns: 50, endOnFailure: true },
  );
  // The histories are a real test only if they reach these operations.
  for (const deep of [
    "task.suspend 200",
    "task.suspend 300",
    "task.fulfill 200",
    "task.fence 200",
    "task.acquire 409",
  ]) {
    expect([...statuses]).toContain(deep);
  }
});

function sideBySide(dir: string, steps: Step[], statuses: Set<string>): void {
  const memory = new MemoryState();
  let store = new Store(new NodeSql(openDatabase(dir).db));
  let engine = new Engine(store);
  let now = 1_800_000_000_000;
  for (const step of steps) {
    now += step.delay;
    if ("restart" in step) {
      store.close();
      store = new Store(new NodeSql(openDatabase(dir).db));
      engine = new Engine(store);
    } else if ("tick" in step) {
      const due = memory.due(now);
      expect(messages(store.transaction(() => engine.tick(now)).changes)).toEqual(
        messages(handleDue(memory, now, due)),
      );
    } else {
      const request = step.request(now, memory);
      const stored = store.transaction(() => engine.apply(now, structuredClone(request)));
      const expected = carryOut(memory, now, request);
      statuses.add(`${request.kind} ${expected.response.head.status}`);
      expect(stored.response).toEqual(JSON.parse(JSON.stringify(expected.response)));
      expect(messages(stored.changes)).toEqual(messages(expected.changes));
    }
    if (!("request" in step) || step === steps.at(-1)) expectSame(store, memory);
  }
  store.close();
}

/** The messages, sorted, since messages to different receivers have no order among each other. */
function messages(changes: readonly Change[]): unknown {
  return canonical(changes.filter(({ kind }) => kind === "execute" || kind === "unblock"));
}

function expectSame(store: Store, memory: MemoryState): void {
  const all = (table: "promises" | "tasks" | "schedules") => store.ids(table, "ORDER BY id");
  for (const [stored, expected] of [
    [all("promises").map((id) => store.promise(id)), memory.promises],
    [all("tasks").map((id) => store.task(id)), memory.tasks],
    [all("schedules").map((id) => store.schedule(id)), memory.schedules],
  ] as const)
    expect(canonical(stored)).toEqual(canonical([...expected.values()]));
}

/** Records as sorted JSON, with sets and keys in order. */
function canonical(records: readonly unknown[]): string[] {
  const sorted = (_: string, value: unknown) => {
    if (value instanceof Set) return [...value].sort();
    if (!value || typeof value !== "object" || Array.isArray(value)) return value;
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
  };
  return records.map((record) => JSON.stringify(record, sorted)).sort();
}
