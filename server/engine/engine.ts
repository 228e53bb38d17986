/** Runs the state machine on the store: requests, searches and time-outs. Runs in its caller's transaction. */
import type { PromiseSearchReq, Request, ScheduleSearchReq, TaskSearchReq } from "@resonatehq/sdk";
import { rootOf, splitGeneration } from "../../core/resonate/index.ts";
import { acquireWithRecords } from "./acquired-records.ts";
import { parsePollAddress } from "./poll-address.ts";
import { type ReadRequest, readPromises } from "./read-promises.ts";
import type { Change, Operation, Outcome, State } from "./records.ts";
import { TransactionRolledBack } from "./sql.ts";
import { carryOut, handleDue, RETRY_INTERVAL_MS, skip } from "./state-machine.ts";
import type { Store } from "./store.ts";
import type { DueTask } from "./task-queue.ts";
import { WorkingSet } from "./working-set.ts";

type SearchRequest = PromiseSearchReq | TaskSearchReq | ScheduleSearchReq;
/** Removes a finished job with all its records. An addition to the protocol, which the standalone server refuses. */
interface ForgetRequest {
  kind: "promise.forget";
  head: { corrId: string; version: string; auth?: string };
  data: { id: string };
}
export type EngineRequest = Exclude<Request, { kind: `debug.${string}` }> | ForgetRequest | ReadRequest;

/** The result of one tick. Without changes and parked tasks, nothing was due. */
interface Tick {
  changes: Change[];
  /** How many unclaimed tasks were parked. */
  parkedCount: number;
}

/** How many time-outs of each kind one tick handles, so that requests are answered between ticks. */
const MAX_TIMEOUTS_PER_TICK = 100;
/** The ticks before a search hold up all other requests. */
const MAX_TICKS_BEFORE_SEARCH = 10;

export class Engine {
  readonly #store: Store;
  readonly #hasWorker: ((group: string) => boolean) | undefined;
  readonly #onScheduleSkipped: ((error: unknown, schedule: string) => void) | undefined;

  /**
   * `hasWorker` says whether a worker of a group is connected. The unclaimed tasks of a group without a worker are parked;
   * the others are dispatched again at growing intervals. Without `hasWorker`, each is dispatched again every 30 seconds.
   * `onScheduleSkipped` is called with a schedule that could not fire.
   */
  constructor(
    store: Store,
    hasWorker?: (group: string) => boolean,
    onScheduleSkipped?: (error: unknown, schedule: string) => void,
  ) {
    this.#store = store;
    this.#hasWorker = hasWorker;
    this.#onScheduleSkipped = onScheduleSkipped;
  }

  /** Answers one request as of `now` and stores its changes. */
  apply(now: number, request: EngineRequest): Outcome {
    switch (request.kind) {
      case "promise.search":
      case "task.search":
      case "schedule.search":
        return this.#search(now, request);
      case "promise.forget":
        return { response: { kind: request.kind, head: this.#forget(request.data.id), data: {} }, changes: [] };
    }
    if (request.kind === "promise.read") return readPromises(this.#store, now, request);
    const state = new WorkingSet(this.#store);
    const outcome =
      request.kind === "task.acquire" ? acquireWithRecords(state, now, request) : carryOut(state, now, request);
    state.write();
    return outcome;
  }

  /** Removes all generations of a job's name, unless one or its clean-up is pending: a remaining one would still hold the name. */
  #forget(id: string): { status: 200 | 404 | 422 } {
    const { base } = splitGeneration(rootOf(id));
    const generations = this.#store.generations(base);
    if (generations.length === 0) return { status: 404 };
    if (generations.some(({ state }) => state === "pending")) return { status: 422 };
    this.#store.remove(base);
    return { status: 200 };
  }

  /** Handles a batch of the time-outs that are due at `now`. */
  tick(now: number): Tick {
    const promises = this.#store.duePromises(now, MAX_TIMEOUTS_PER_TICK);
    // A promise that is due must time out before its task could be dispatched again.
    const tasks = promises.length < MAX_TIMEOUTS_PER_TICK ? this.#store.queue.dueTasks(now, MAX_TIMEOUTS_PER_TICK) : [];
    const duePromises = new Set(promises);
    const isUnclaimed = ({ id, dispatchedTo }: DueTask) =>
      this.#hasWorker && dispatchedTo !== null && !duePromises.has(id);
    const unclaimedTasks = tasks.filter(isUnclaimed);
    const otherTasks = tasks.filter((task) => !isUnclaimed(task));
    const dispatches = unclaimedTasks.flatMap((task) => this.#dispatchAgain(task, now));
    const schedules = this.#store.ids(
      "schedules",
      "WHERE timer <= ? ORDER BY timer LIMIT ?",
      now,
      MAX_TIMEOUTS_PER_TICK,
    );
    const state = new WorkingSet(this.#store);
    const changes = handleDue(state, now, { promises, tasks: otherTasks.map(({ id }) => id), schedules: [] });
    state.write();
    const firings = schedules.flatMap((id) => this.#fire(id, now));
    return {
      changes: [...changes, ...firings, ...dispatches],
      parkedCount: unclaimedTasks.length - dispatches.length,
    };
  }

  /** Fires a schedule that is due. One that cannot fire is skipped: its error would undo the whole tick, each time. */
  #fire(id: string, now: number): Change[] {
    const attempt = (work: (state: State) => Change[]) =>
      this.#store.attempt(() => {
        const state = new WorkingSet(this.#store);
        const changes = work(state);
        state.write();
        return changes;
      });
    try {
      return attempt((state) => handleDue(state, now, { promises: [], tasks: [], schedules: [id] }));
    } catch (error) {
      if (error instanceof TransactionRolledBack) throw error;
      this.#onScheduleSkipped?.(error, id);
      return attempt((state) => skip(state, now, id));
    }
  }

  /** Dispatches an unclaimed task again, or parks it while its group has no worker. */
  #dispatchAgain({ id, version, dispatchedTo }: DueTask, now: number): Change[] {
    const address = dispatchedTo ?? "";
    const group = parsePollAddress(address)?.group;
    if (group === undefined || !this.#hasWorker?.(group)) {
      this.#store.queue.park(id);
      return [];
    }
    this.#store.queue.backOff(id, now);
    return [{ kind: "execute", address, task: { id, version }, timer: now + RETRY_INTERVAL_MS }];
  }

  /** Finds ids in the database, in the standalone server's order and with its filters and cursor, and reads each record. */
  #search(now: number, request: SearchRequest): Outcome {
    const changes = this.#handleDue(now);
    const { table, get, list, defaultLimit } = SEARCHES[request.kind];
    const { limit = defaultLimit, cursor } = request.data;
    const conditions: [string, string][] = [];
    if ("state" in request.data && request.data.state !== undefined) conditions.push(["state = ?", request.data.state]);
    if ("tags" in request.data && request.data.tags !== undefined) {
      // The store writes tags with the same `JSON.stringify`: a search for the text spares parsing the rows without it.
      for (const tag of Object.entries(request.data.tags))
        conditions.push(["instr(tags, ?) > 0", JSON.stringify(Object.fromEntries([tag])).slice(1, -1)]);
      conditions.push([
        "NOT EXISTS (SELECT key, value FROM json_each(?) EXCEPT SELECT key, value FROM json_each(tags))",
        JSON.stringify(request.data.tags),
      ]);
    }
    if (cursor !== undefined) conditions.push(["id > ?", cursor]);
    const condition = conditions.length > 0 ? `WHERE ${conditions.map(([sql]) => sql).join(" AND ")}` : "";
    const ids = this.#store.ids(
      table,
      `${condition} ORDER BY id LIMIT ?`,
      ...conditions.map(([, value]) => value),
      limit + 1,
    );
    const records = ids.slice(0, limit).map((id) => {
      const { response, changes: timeouts } = this.apply(now, {
        kind: get,
        head: REQUEST_HEAD,
        data: { id },
      } satisfies Operation);
      // The read handles a time-out that is still due.
      changes.push(...timeouts);
      return Object.values(response.data as object)[0];
    });
    const data = { [list]: records, ...(ids.length > limit && { cursor: ids[limit - 1] }) };
    return { response: { kind: request.kind, head: { status: 200 }, data }, changes };
  }

  /** Handles what is due, so that a search sees a promise past its deadline as timed out. */
  #handleDue(now: number): Change[] {
    const changes: Change[] = [];
    for (let n = 0; n < MAX_TICKS_BEFORE_SEARCH; n++) {
      const tick = this.tick(now);
      if (tick.changes.length + tick.parkedCount === 0) break;
      changes.push(...tick.changes);
    }
    return changes;
  }
}

/** The head of requests that the engine itself sends. */
const REQUEST_HEAD = { corrId: "", version: "" };

const SEARCHES = {
  "promise.search": { table: "promises", get: "promise.get", list: "promises", defaultLimit: 100 },
  "task.search": { table: "tasks", get: "task.get", list: "tasks", defaultLimit: 100 },
  "schedule.search": { table: "schedules", get: "schedule.get", list: "schedules", defaultLimit: 10 },
} as const;
