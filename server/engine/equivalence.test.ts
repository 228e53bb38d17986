// The embedded server keeps its state in SQLite and shows the SDK's state machine only the rows that a request
// touches. Here both run side by side on random histories, one with everything in memory, one from the file and
// restarted now and then: every answer, every message and the whole state must be the same.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Request } from "@resonatehq/sdk";
import fc from "fast-check";
import { expect, test } from "vitest";
import { history, type Step } from "../../test/server/histories.ts";
import { openDatabase } from "../node/database.ts";
import { NodeSql } from "../node/node-sql.ts";
import { Engine } from "./engine.ts";
import { type Change, createStateMachine, type StateMachine, type Transition } from "./state-machine.ts";
import { Store } from "./store.ts";

const head = { corrId: "1", version: "2026-04-01" };
const SNAP: Request = { kind: "debug.snap", head, data: {} };

test("answers, messages and state are those of the state machine in memory, across restarts", {
  timeout: 60_000,
}, () => {
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
  // The histories are worth something only if they got through.
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
  const memory = createStateMachine();
  let store = new Store(new NodeSql(openDatabase(dir).db));
  let engine = new Engine(store);
  let now = 1_800_000_000_000;
  for (const step of steps) {
    now += step.pass;
    if ("restart" in step) {
      store.close();
      store = new Store(new NodeSql(openDatabase(dir).db));
      engine = new Engine(store);
    } else if ("tick" in step) {
      expect(messages(store.transaction(() => engine.tick(now)).changes)).toEqual(messages(tick(memory, now)));
    } else {
      const request = step.ask(now, memory);
      const stored = store.transaction(() => engine.apply(now, structuredClone(request)));
      const expected = memory.apply(now, request);
      statuses.add(`${request.kind} ${expected.response.head.status}`);
      expect(answer(stored)).toEqual(answer(expected));
      expect(messages(stored.changes)).toEqual(messages(expected.changes));
    }
    if (!("ask" in step) || step === steps.at(-1)) {
      const stored = store.transaction(() => engine.apply(now, SNAP));
      expect(snapshot(stored)).toEqual(snapshot(memory.apply(now, SNAP)));
    }
  }
  store.close();
}

/** The embedded server also times out, at a tick, what the state machine would leave until somebody asks. */
function tick(memory: StateMachine, now: number): Change[] {
  const { changes } = memory.apply(now, { kind: "debug.tick", head, data: { time: now } });
  const ids = [...memory.promises.keys()];
  return [...changes, ...ids.flatMap((id) => memory.apply(now, { kind: "promise.get", head, data: { id } }).changes)];
}

/** As it goes over the wire; a preload has no order. */
function answer({ response }: Transition): unknown {
  const { data, ...rest } = sent(response);
  return { ...rest, data: data.preload ? { ...data, preload: sorted(data.preload) } : data };
}

/** Messages to different receivers have no order among each other. */
function messages(changes: Change[]): unknown {
  return sorted(changes.filter((change) => change.kind === "message.send"));
}

/** Everything but the messages that the state machine keeps for whoever drives it to take. */
function snapshot({ response }: Transition): unknown {
  const { messages: _, ...state } = sent(response.data) as Record<string, unknown[]>;
  return Object.fromEntries(Object.entries(state).map(([name, rows]) => [name, sorted(rows)]));
}

/** As JSON has it. What a task was woken by at one moment, two deadlines for instance, has no order. */
function sent(value: unknown) {
  return JSON.parse(JSON.stringify(value), (key, part) =>
    key === "resumes" && Array.isArray(part) ? part.sort() : part,
  );
}

function sorted(rows: unknown[]): unknown[] {
  return rows.map(canonical).sort();
}

function canonical(row: unknown): string {
  return JSON.stringify(row, (_, value) =>
    value && typeof value === "object" && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}
