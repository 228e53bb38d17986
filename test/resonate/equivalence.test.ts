// The embedded server keeps its state in SQLite and shows the SDK's state machine only the rows that a request
// touches. Here both run side by side on random histories, one with everything in memory, one from the file and
// restarted now and then: every answer, every message and finally the whole state must be the same.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Request } from "@resonatehq/sdk";
import fc from "fast-check";
import { expect, test } from "vitest";
import { openDatabase } from "../../infra/resonate/database.ts";
import { Engine } from "../../infra/resonate/engine.ts";
import { type Change, createStateMachine, type Outcome } from "../../infra/resonate/state-machine.ts";
import { Store } from "../../infra/resonate/store.ts";

const head = { corrId: "1", version: "2026-04-01" };

const ROOTS = ["a", "b", "c"];
const CHILDREN = ROOTS.flatMap((root) => [`${root}:0`, `${root}:1`, `${root}:2`]);
const root = fc.constantFrom(...ROOTS);
const anyId = fc.constantFrom(...ROOTS, ...CHILDREN, "missing");
const version = fc.integer({ min: 0, max: 3 });
const pid = fc.constantFrom("p1", "p2");
const ttl = fc.integer({ min: 1, max: 40_000 });
const state = fc.constantFrom("resolved", "rejected", "rejected_canceled");
const value = fc.constantFrom({}, { data: "eA==" }, { headers: { h: "ü" }, data: "" });
/** Milliseconds from now, some of them in the past. */
const soon = fc.integer({ min: -10, max: 60_000 });

const create = fc
  .record({ id: anyId, soon, target: fc.boolean(), timer: fc.boolean(), delay: fc.option(soon), param: value })
  .map(({ id, soon, target, timer, delay, param }) => (now: number) => ({
    kind: "promise.create" as const,
    head,
    data: {
      id,
      timeoutAt: now + soon,
      param,
      tags: {
        "resonate:branch": id.slice(0, 1),
        "resonate:scope": "global",
        ...((target || ROOTS.includes(id)) && { "resonate:target": `poll://any@${id.slice(0, 1)}` }),
        ...(timer && { "resonate:timer": "true" }),
        ...(delay !== null && { "resonate:delay": String(now + delay) }),
      },
    },
  }));
const settle = fc.record({ id: anyId, state, value }).map((data) => () => ({ kind: "promise.settle", head, data }));

const request = fc.oneof(
  { weight: 4, arbitrary: create },
  { weight: 3, arbitrary: settle },
  anyId.map((id) => () => ({ kind: "promise.get", head, data: { id } })),
  anyId.map((id) => () => ({ kind: "task.get", head, data: { id } })),
  fc.record({ awaited: anyId, awaiter: root }).map((data) => () => ({ kind: "promise.register_callback", head, data })),
  fc
    .record({ awaited: anyId, address: fc.constantFrom("poll://uni@e/1", "poll://uni@e/2") })
    .map((data) => () => ({ kind: "promise.register_listener", head, data })),
  fc
    .record({ pid, ttl, create, id: root })
    .map(({ pid, ttl, create, id }) => (now: number) => {
      const action = create(now);
      action.data.id = id;
      action.data.tags["resonate:target"] = `poll://any@${id}`;
      return { kind: "task.create", head, data: { pid, ttl, action } };
    }),
  { weight: 4, arbitrary: fc.record({ id: root, version, pid, ttl }).map((data) => () => ({ kind: "task.acquire", head, data })) },
  fc.record({ id: root, version }).map((data) => () => ({ kind: "task.release", head, data })),
  {
    weight: 4,
    arbitrary: fc.record({ id: root, version, awaited: fc.subarray(CHILDREN, { minLength: 1, maxLength: 4 }) }).map(
      ({ id, version, awaited }) =>
        () => ({
          kind: "task.suspend",
          head,
          data: {
            id,
            version,
            actions: awaited.map((child) => ({
              kind: "promise.register_callback",
              head,
              data: { awaited: child, awaiter: id },
            })),
          },
        }),
    ),
  },
  fc.record({ id: root, version, state, value }).map(({ id, version, state, value }) => () => ({
    kind: "task.fulfill",
    head,
    data: { id, version, action: { kind: "promise.settle", head, data: { id, state, value } } },
  })),
  fc
    .record({ id: root, version, action: fc.oneof(create, settle) })
    .map(({ id, version, action }) => (now: number) => ({ kind: "task.fence", head, data: { id, version, action: action(now) } })),
  fc
    .record({ pid, tasks: fc.array(fc.record({ id: root, version }), { maxLength: 3 }) })
    .map((data) => () => ({ kind: "task.heartbeat", head, data })),
  root.map((id) => () => ({ kind: "task.halt", head, data: { id } })),
  root.map((id) => () => ({ kind: "task.continue", head, data: { id } })),
  fc.constantFrom("s1", "s2").map((id) => () => ({
    kind: "schedule.create",
    head,
    data: {
      id,
      cron: "*/10 * * * * *",
      promiseId: "{{.id}}-{{.timestamp}}",
      promiseTimeout: 5_000,
      promiseParam: {},
      promiseTags: { "resonate:target": "poll://any@s" },
    },
  })),
  fc.constantFrom("s1", "s2").map((id) => () => ({ kind: "schedule.get", head, data: { id } })),
  fc.constantFrom("s1", "s2").map((id) => () => ({ kind: "schedule.delete", head, data: { id } })),
) as fc.Arbitrary<(now: number) => Request>;

type Step = { pass: number } & ({ request: (now: number) => Request } | { tick: true } | { restart: true });

const pass = fc.oneof({ weight: 8, arbitrary: fc.integer({ min: 0, max: 500 }) }, fc.integer({ min: 10_000, max: 70_000 }));
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ pass, request }) },
  { weight: 2, arbitrary: fc.record({ pass, tick: fc.constant(true as const) }) },
  { weight: 1, arbitrary: fc.record({ pass, restart: fc.constant(true as const) }) },
);

test("answers, messages and state are those of the state machine in memory, across restarts", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 20, maxLength: 60 }), (steps) => {
      const dir = mkdtempSync(join(tmpdir(), "resonate-"));
      const memory = createStateMachine();
      let store = new Store(openDatabase(dir).db);
      let engine = new Engine(store);
      let now = 1_800_000_000_000;
      try {
        for (const step of steps) {
          now += step.pass;
          if ("restart" in step) {
            store.close();
            store = new Store(openDatabase(dir).db);
            engine = new Engine(store);
          } else if ("tick" in step) {
            const stored = store.transaction(() => engine.tick(now));
            expect(messages(stored.changes)).toEqual(messages(tickInMemory(now)));
          } else {
            const request = step.request(now);
            const stored = store.transaction(() => engine.apply(now, structuredClone(request)));
            const expected = memory.apply(now, request);
            expect(answer(stored)).toEqual(answer(expected));
            expect(messages(stored.changes)).toEqual(messages(expected.changes));
          }
        }
        const snap: Request = { kind: "debug.snap", head, data: {} };
        expect(state_(store.transaction(() => engine.apply(now, snap)))).toEqual(state_(memory.apply(now, snap)));
      } finally {
        store.close();
        rmSync(dir, { recursive: true });
      }

      /** The embedded server also times out, at a tick, what the state machine would leave until somebody asks. */
      function tickInMemory(now: number): Change[] {
        const { changes } = memory.apply(now, { kind: "debug.tick", head, data: { time: now } });
        for (const id of [...memory.promises.keys()]) {
          changes.push(...memory.apply(now, { kind: "promise.get", head, data: { id } }).changes);
        }
        return changes;
      }
    }),
    { numRuns: 60 },
  );
});

/** As it goes over the wire; a preload has no order. */
function answer({ response }: Outcome): unknown {
  const plain = JSON.parse(JSON.stringify(response));
  if (plain.data.preload) plain.data.preload = sorted(plain.data.preload);
  return plain;
}

/** Messages to different receivers have no order among each other. */
function messages(changes: Change[]): unknown {
  return sorted(changes.filter((change) => change.kind === "message.send"));
}

function state_({ response }: Outcome): unknown {
  const { messages: _, ...state } = JSON.parse(JSON.stringify(response.data)) as Record<string, unknown[]>;
  return Object.fromEntries(Object.entries(state).map(([name, rows]) => [name, sorted(rows)]));
}

function sorted(rows: unknown[]): unknown[] {
  return rows.map((row) => canonical(row)).sort();
}

function canonical(row: unknown): string {
  return JSON.stringify(row, (_, value) =>
    value && typeof value === "object" && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}
