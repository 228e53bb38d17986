// Compares the embedded server's engine with the standalone server of `RESONATE_BIN` in its debug mode, in which requests set the
// time. On random histories every answer and, at each tick, the whole state and all messages are the same, except for the
// differences in docs/resonate.md. `FUZZ_TIMES=40` makes 30,000 steps, in five minutes; `DIFFERENTIAL_SEED` selects others.

import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startChild } from "../../cli/process/child.ts";
import { Engine } from "../../server/engine/engine.ts";
import { MemoryState } from "../../server/engine/memory-state.ts";
import { type Change, promiseRecord, taskRecord } from "../../server/engine/records.ts";
import { carryOut, handleDue } from "../../server/engine/state-machine.ts";
import { Store } from "../../server/engine/store.ts";
import { openDatabase } from "../../server/node/database.ts";
import { NodeSql } from "../../server/node/node-sql.ts";
import { InvalidRequest, parseRequest } from "../../server/wire/requests.ts";
import { freePort } from "../../testing/stack/port.ts";
import { waitForAnswer, watch } from "../../testing/stack/program.ts";
import { connectTo, releaseOf } from "../contract/server.ts";
import { acceptedBy010, type TimedStep, timedHistory } from "./histories.ts";

const binary = process.env.RESONATE_BIN;
const SEED = Number(process.env.DIFFERENTIAL_SEED ?? 14);
const RUNS = 8 * Number(process.env.FUZZ_TIMES ?? 1);
const START_TIME = 1_800_000_000_000;

let url: string;
let isFor010: boolean;
let stop: () => Promise<void> = async () => {};
beforeAll(async () => {
  if (!binary) return;
  const port = await freePort();
  const args = ["dev", "--debug", "--level", "warn", "--server-bind", "127.0.0.1", "--server-port", String(port)];
  const server = watch(startChild(binary, [...args, "--observability-metrics-port", "0"], { env: {}, grace: 1_000 }));
  stop = async () => server[Symbol.asyncDispose]();
  url = `http://127.0.0.1:${port}`;
  await waitForAnswer(`${url}/ready`, server);
  isFor010 = (await releaseOf(connectTo(url, stop))) === "0.10";
});
afterAll(() => stop());

async function askStandalone(kind: string, data: object, now = START_TIME) {
  const head = { corrId: "1", version: "2026-04-01", "resonate:debug_time": now };
  const response = await fetch(url, { method: "POST", body: JSON.stringify({ kind, head, data }) });
  return { status: response.status, data: ((await response.json()) as { data: unknown }).data };
}

describe.runIf(binary)("on the same history", () => {
  test("the embedded server and the standalone one do the same", { timeout: 1_200_000 }, async () => {
    const outcomes = new Set<string>();
    await askStandalone("debug.start", {});
    await fc.assert(
      fc.asyncProperty(timedHistory, (steps) => sideBySide(steps, outcomes)),
      { seed: SEED, numRuns: RUNS, endOnFailure: true },
    );
    for (const deep of [
      "task.suspend 200",
      "task.suspend 300",
      "task.fulfill 200",
      "task.fence 200",
      "task.acquire 409",
    ])
      expect([...outcomes]).toContain(deep);
  });
});

async function sideBySide(steps: readonly TimedStep[], outcomes: Set<string>): Promise<void> {
  await askStandalone("debug.reset", {});
  const embedded = new Embedded();
  const memory = new MemoryState();
  const log: string[] = [];
  let now = START_TIME;
  for (const step of steps) {
    now += step.delay;
    if ("tick" in step) {
      // One tick fires a schedule only once, even if it has missed several runs, so ticks are repeated until none is due.
      for (let wasDue = true; wasDue;) {
        log.push(`${now} tick`);
        expect((await askStandalone("debug.tick", { time: now }, now)).status).toBe(200);
        wasDue = embedded.tick(now);
        handleDue(memory, now, memory.due(now));
        const { promiseTimeouts, ...state } = (await askStandalone("debug.snap", {})).data as Record<string, unknown[]>;
        const standaloneState = Object.fromEntries(Object.entries(state).map(([name, rows]) => [name, sorted(rows)]));
        expect(withoutRetries(embedded.snapshot()), log.join("\n")).toEqual(withoutRetries(standaloneState));
      }
    } else {
      const undelayed = withoutDelay(step.request(now, memory));
      const request = isFor010 ? acceptedBy010(undelayed, now) : undelayed;
      if (!request) continue;
      const { kind, data } = request;
      log.push(`${now} ${kind} ${JSON.stringify(data)}`);
      const standaloneAnswer = await askStandalone(kind, data, now);
      const answer = embedded.ask(kind, data, now, memory);
      outcomes.add(`${kind} ${answer.status}`);
      expect(comparable(answer), log.join("\n")).toEqual(comparable(standaloneAnswer));
    }
  }
  embedded.close();
}

/** The request without the tag `resonate:delay`, which is a documented difference. */
const withoutDelay = <T>(request: T): T =>
  JSON.parse(JSON.stringify(request), (key, value) => (key === "resonate:delay" ? undefined : value));

/** The state without the retries of scheduled tasks, whose times on 0.10 are a documented difference. */
function withoutRetries<S extends { taskTimeouts?: unknown[] }>(state: S): S {
  const isScheduled = (row: unknown) => String(row).startsWith('{"id":"s');
  return isFor010 ? { ...state, taskTimeouts: state.taskTimeouts?.filter((row) => !isScheduled(row)) } : state;
}

/** The answer without documented differences: the reason of a refusal, and the promises that a fence preloads. */
function comparable({ status, data }: { status: number; data: unknown }): unknown {
  if (status >= 400) return { status };
  return JSON.parse(JSON.stringify({ status, data }), function (this: object, key, value) {
    if (key === "preload" && "action" in this) return undefined;
    return key === "data" && typeof value === "string" && "kind" in this ? "reason" : value;
  });
}

class Embedded {
  readonly #store = new Store(new NodeSql(openDatabase(undefined).db));
  readonly #engine = new Engine(this.#store);
  /** The last dispatch of each task and all notifications, as in a snapshot of the standalone server. */
  readonly #messages = new Map<string, unknown>();

  ask(kind: string, data: object, now: number, memory: MemoryState) {
    try {
      const body = JSON.stringify({ kind, head: { corrId: "1", version: "2026-04-01" }, data });
      const request = parseRequest(new TextEncoder().encode(body));
      if (!request.kind.endsWith(".search")) carryOut(memory, now, structuredClone(request) as never);
      const { response, changes } = this.#store.transaction(() => this.#engine.apply(now, request));
      this.#recordMessages(changes);
      return { status: response.head.status, data: response.data };
    } catch (error) {
      if (error instanceof InvalidRequest) return { status: error.status, data: error.message };
      throw error;
    }
  }

  /** Whether anything was due. */
  tick(now: number): boolean {
    const { changes } = this.#store.transaction(() => this.#engine.tick(now));
    this.#recordMessages(changes);
    return changes.length > 0;
  }

  #recordMessages(changes: readonly Change[]): void {
    for (const change of changes) {
      if (change.kind === "execute") {
        const { address, task } = change;
        this.#messages.set(task.id, { address, message: { kind: "execute", head: {}, data: { task } } });
      } else if (change.kind === "unblock") {
        const { address, message } = change;
        this.#messages.set(`${message.data.promise.id} ${address}`, { address, message });
      }
    }
  }

  snapshot() {
    const all = <V>(table: "promises" | "tasks", read: (id: string) => V | undefined) =>
      this.#store.ids(table, "ORDER BY id").flatMap((id) => read(id) ?? []);
    const promises = all("promises", (id) => this.#store.promise(id));
    const tasks = all("tasks", (id) => this.#store.task(id));
    return {
      promises: sorted(promises.map(promiseRecord)),
      callbacks: sorted(
        promises.flatMap(({ id, callbacks }) => [...callbacks].map((awaiter) => ({ awaiter, awaited: id }))),
      ),
      listeners: sorted(promises.flatMap(({ id, listeners }) => [...listeners].map((address) => ({ id, address })))),
      tasks: sorted(tasks.map(taskRecord)),
      taskTimeouts: sorted(
        tasks.flatMap(({ id, state, timer }) =>
          timer === undefined ? [] : [{ id, type: state === "acquired" ? 1 : 0, timeout: timer }],
        ),
      ),
      messages: sorted([...this.#messages.values()]),
    };
  }

  close(): void {
    this.#store.close();
  }
}

/** The rows as sorted JSON texts with sorted keys. */
function sorted(rows: readonly unknown[]): unknown[] {
  const inOrder = (_: string, value: unknown) =>
    value && typeof value === "object" && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value;
  return rows.map((row) => JSON.stringify(row, inOrder)).sort();
}
