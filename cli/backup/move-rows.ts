/** Moves the rows of a backup to another Resonate server through the protocol alone. */
import { setTimeout as delay } from "node:timers/promises";
import PQueue from "p-queue";
import {
  type OperationKind,
  type PromiseRecord,
  type PromiseState,
  type RequestData,
  type ResonateClient,
  type RULES_OF_0_9,
  timerTags,
  type Value,
  withoutTimerTags,
} from "../../core/resonate/index.ts";
import type { Row } from "../../server/engine/sql.ts";
import type { Line } from "./backup-file.ts";

const MAX_CONCURRENT_REQUESTS = 16;
/** How often a request that fails temporarily is tried, and the first pause between tries, which doubles. */
const MAX_ATTEMPTS = 6;
const FIRST_PAUSE_MS = 100;

/** The shortest time-out of a promise that is settled right after its creation. */
const MIN_TIMEOUT_MS = 3_600_000;
/** The lease on the task of a job that has ended, which is settled right after its creation. */
const PID = "move";
const LEASE_MS = 60_000;

interface Moved {
  /** Settled promises: jobs and their steps. */
  ended: number;
  /** Pending steps, timers and questions. */
  pending: number;
  /** Running jobs, which the workers of the new server resume. */
  running: number;
  /** Schedules of the protocol, which are not moved: this product creates none. */
  schedules: number;
}

/**
 * Moves rows in the order of their dependencies: settled promises, then pending ones, then running jobs, which workers claim
 * at once. Existing promises are not changed, so that the move can be repeated. Calls `read` several times. `rules`: those of
 * the new server.
 *
 * @throws {Error} if the server refuses a request, or cannot be reached
 */
export async function moveRows(
  read: () => AsyncIterable<Line>,
  client: ResonateClient,
  rules: Pick<typeof RULES_OF_0_9, "armsTargetsOnly">,
): Promise<Moved> {
  const armsTargetsOnly = await rules.armsTargetsOnly();
  const moved: Moved = { ended: 0, pending: 0, running: 0, schedules: 0 };
  for (const group of ["ended", "pending", "running"] as const) {
    const queue = new PQueue({ concurrency: MAX_CONCURRENT_REQUESTS });
    const failures: unknown[] = [];
    for await (const { table, row } of read()) {
      if (table !== "promises" || groupOf(row) !== group) continue;
      await queue.onSizeLessThan(MAX_CONCURRENT_REQUESTS);
      if (failures.length > 0) break;
      queue.add(() => movePromise(client, promiseOf(row), armsTargetsOnly)).catch((error) => failures.push(error));
      moved[group] += 1;
    }
    await queue.onIdle();
    if (failures.length > 0) throw failures[0];
  }
  for await (const line of read()) if (line.table === "schedules" && !("caller" in line)) moved.schedules += 1;
  return moved;
}

function groupOf(row: Row): "ended" | "pending" | "running" {
  if (row.state !== "pending") return "ended";
  return isTargeted(promiseOf(row)) ? "running" : "pending";
}

const isTargeted = ({ tags }: PromiseRecord) => tags["resonate:target"] !== undefined;

function promiseOf({ id, state, param, value, tags, timeoutAt, createdAt }: Row): PromiseRecord {
  return {
    id: String(id),
    state: state as PromiseState,
    param: JSON.parse(String(param)) as Value,
    value: JSON.parse(String(value)) as Value,
    // The two servers may differ in whether promises that time out by themselves need these tags.
    tags: withoutTimerTags(JSON.parse(String(tags))),
    timeoutAt: Number(timeoutAt),
    createdAt: Number(createdAt),
  };
}

async function movePromise(client: ResonateClient, promise: PromiseRecord, armsTargetsOnly: boolean): Promise<void> {
  const { id, state, param, value, tags, timeoutAt } = promise;
  // A promise past its deadline settles at its creation. That suffices for one that timed out, and for a timer that fired.
  const endsByItself = state === "rejected_timedout" || (state === "resolved" && tags["resonate:timer"] === "true");
  if (state === "pending" || (endsByItself && timeoutAt <= Date.now())) {
    const isToArm = armsTargetsOnly && state === "pending" && !isTargeted(promise);
    const all = { ...tags, ...(isToArm && timerTags(timeoutAt)) };
    await ask(client, "promise.create", { id, param, tags: all, timeoutAt });
    return;
  }
  if (state === "rejected_timedout") throw new Error(`${id} timed out before its time: is this machine's clock right?`);
  const created = { id, param, tags, timeoutAt: Math.max(timeoutAt, Date.now() + MIN_TIMEOUT_MS) };
  const settled = { id, state, value };
  if (!isTargeted(promise)) {
    await ask(client, "promise.create", created);
    await ask(client, "promise.settle", settled);
    return;
  }
  // `task.create` acquires the task at once, so that no worker gets a job that has ended.
  const action = { kind: "promise.create", data: created } as const;
  const { task } = await ask(client, "task.create", { pid: PID, ttl: LEASE_MS, action }).catch((error) => {
    // The task is taken: by this move, when it was interrupted or the answer was lost, or by a worker.
    if (error instanceof Refused && error.status === 409) return ask(client, "task.get", { id });
    throw error;
  });
  if (task.state === "acquired" && task.pid === PID) await ask(client, "promise.settle", settled);
}

class Refused extends Error {
  readonly status: number;
  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

/** Sends a request; encrypted values stay encrypted. @throws {Error} if the server refuses it, or it keeps failing */
async function ask<K extends OperationKind>(client: ResonateClient, kind: K, data: RequestData<K>) {
  const { id: own = "", action } = data as { id?: string; action?: { data: { id: string } } };
  const id = action?.data.id ?? own;
  for (let attempt = 1; ; attempt++) {
    const response = await client.post(kind, data, { origin: id }).catch((error: Error) => error);
    if (!(response instanceof Error) && response.status < 500) {
      const { head, data: answer } = await response.json();
      if (head.status < 300) return answer;
      throw new Refused(`The server refuses ${kind} of ${id}: ${head.status} ${JSON.stringify(answer)}`, head.status);
    }
    if (attempt === MAX_ATTEMPTS) {
      const why = response instanceof Error ? String(response.cause ?? response) : `it answers ${response.status}`;
      throw new Error(`The server cannot be used: ${why}. The same command continues where this stopped.`);
    }
    await delay(FIRST_PAUSE_MS * 2 ** (attempt - 1));
  }
}
