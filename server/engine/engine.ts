/** The state machine over the store: requests, time-outs and searches. Runs in the transaction of its caller. */
import type { PromiseSearchReq, Request, ScheduleSearchReq, TaskSearchReq } from "@resonatehq/sdk";
import { parsePollAddress } from "../wire/poll-address.ts";
import { acquire } from "./acquired-records.ts";
import { Slice } from "./slice.ts";
import { type Change, createStateMachine, type Transition } from "./state-machine.ts";
import type { DueTask, Store } from "./store.ts";

type SearchRequest = PromiseSearchReq | TaskSearchReq | ScheduleSearchReq;

/** How many time-outs are handled in one go; requests are answered in between. */
const TICK_SIZE = 100;
const DEFAULT_LIMIT = 100;

export class Engine {
  readonly #machine = createStateMachine();
  readonly #store: Store;
  readonly #isHeard: ((group: string) => boolean) | undefined;

  /**
   * `isHeard`: whether somebody of a worker group is there, so that it is of use to dispatch a task again. Without it each is
   * dispatched every 30 seconds, as the state machine has it.
   */
  constructor(store: Store, isHeard?: (group: string) => boolean) {
    this.#store = store;
    this.#isHeard = isHeard;
  }

  /** Answers one request as of `now` and stores what it changed. */
  apply(now: number, request: Request): Transition {
    switch (request.kind) {
      case "promise.search":
      case "task.search":
      case "schedule.search":
        return this.#search(now, request);
    }
    const slice = new Slice(this.#store, this.#machine);
    this.#read(request);
    const outcome =
      request.kind === "task.acquire" ? acquire(this.#machine, now, request) : this.#machine.apply(now, request);
    slice.write(outcome.changes);
    return outcome;
  }

  /**
   * Handles up to `TICK_SIZE` promises and as many tasks and schedules that are due at `now`. Without changes in the outcome
   * nothing was due, but for `rested` unclaimed tasks, which nobody is there for.
   */
  tick(now: number): Transition & { rested: number } {
    const promises = this.#store.duePromises(now, TICK_SIZE);
    // A task whose promise is due must not be dispatched again first, so tasks wait until no promise is due any more.
    const due = promises.length < TICK_SIZE ? this.#store.dueTasks(now, TICK_SIZE) : [];
    const { again, others, rested } = this.#dispatchAgain(due, promises, now);
    const schedules = this.#store.ids("schedules", "WHERE timer <= ? ORDER BY timer LIMIT ?", now, TICK_SIZE);
    const slice = new Slice(this.#store, this.#machine);
    for (const id of promises) this.#machine.promises.get(id);
    for (const { id } of others) this.#machine.tasks.get(id);
    for (const id of schedules) this.#machine.schedules.get(id);
    const outcome = this.#machine.apply(now, { kind: "debug.tick", head: HEAD, data: { time: now } });
    // The state machine times a promise without a target out only when a request names it; a server also tells those
    // who wait for it. Naming it is enough.
    for (const id of promises) {
      outcome.changes.push(...this.#machine.apply(now, { kind: "promise.get", head: HEAD, data: { id } }).changes);
    }
    slice.write(outcome.changes);
    return { ...outcome, changes: [...outcome.changes, ...again], rested };
  }

  /** Dispatches those of the tasks again that nobody has claimed, and puts those to rest that nobody is there for. */
  #dispatchAgain(due: readonly DueTask[], promises: readonly string[], now: number) {
    const again: Change[] = [];
    const others: DueTask[] = [];
    let rested = 0;
    for (const task of due) {
      const { id, version, offeredTo: address } = task;
      const group = address === null ? undefined : parsePollAddress(address)?.group;
      if (address === null || !this.#isHeard || promises.includes(id)) {
        others.push(task);
      } else if (group !== undefined && this.#isHeard(group)) {
        this.#store.pause(id, now);
        again.push({
          kind: "message.send",
          address,
          message: { kind: "execute", head: {}, data: { task: { id, version } } },
        });
      } else {
        this.#store.rest(id);
        rested += 1;
      }
    }
    return { again, others, rested };
  }

  /** Reads beforehand what the state machine will look for by walking through a whole map. */
  #read(request: Request): void {
    const { promises, tasks, schedules } = this.#machine;
    switch (request.kind) {
      case "task.create":
      case "task.acquire":
      case "task.suspend": {
        const { id, tags } =
          request.kind === "task.create" ? request.data.action.data : { id: request.data.id, tags: {} };
        const branch = { ...tags, ...promises.get(id)?.tags }["resonate:branch"];
        if (branch === undefined) break;
        for (const sibling of this.#store.ids("promises", "WHERE branch = ? ORDER BY id", branch))
          promises.get(sibling);
        break;
      }
      // Not for clients, who are refused it; it shows the whole state to whoever runs the engine.
      case "debug.snap":
        for (const id of this.#store.ids("promises", "ORDER BY id")) promises.get(id);
        for (const id of this.#store.ids("tasks", "ORDER BY id")) tasks.get(id);
        for (const id of this.#store.ids("schedules", "ORDER BY id")) schedules.get(id);
    }
  }

  /**
   * The one operation that the state machine does not have. The ids come from the database, in the order, by the
   * filters and with the cursor of the real server; the records are what the state machine says about each.
   */
  #search(now: number, request: SearchRequest): Transition {
    const changes = this.#converge(now);
    const { limit = DEFAULT_LIMIT, cursor } = request.data;
    const { table, get, list } = SEARCHES[request.kind];
    const conditions: [string, string][] = [];
    if ("state" in request.data && request.data.state !== undefined) conditions.push(["state = ?", request.data.state]);
    if ("tags" in request.data && request.data.tags !== undefined) {
      // Tags are stored as this writes them. What lacks the text of one need not be taken apart, which takes longer.
      for (const tag of Object.entries(request.data.tags))
        conditions.push(["instr(tags, ?) > 0", JSON.stringify(Object.fromEntries([tag])).slice(1, -1)]);
      conditions.push([
        "NOT EXISTS (SELECT key, value FROM json_each(?) EXCEPT SELECT key, value FROM json_each(tags))",
        JSON.stringify(request.data.tags),
      ]);
    }
    if (cursor !== undefined) conditions.push(["id > ?", cursor]);
    const where = conditions.length > 0 ? `WHERE ${conditions.map(([sql]) => sql).join(" AND ")}` : "";
    const ids = this.#store.ids(
      table,
      `${where} ORDER BY id LIMIT ?`,
      ...conditions.map(([, value]) => value),
      limit + 1,
    );
    const found = ids
      .slice(0, limit)
      .map((id) => this.apply(now, { kind: get, head: HEAD, data: { id } }).response.data);
    const data = {
      [list]: found.map((answer) => Object.values(answer as object)[0]),
      ...(ids.length > limit && { cursor: ids[limit - 1] }),
    };
    return { response: { kind: request.kind, head: { status: 200 }, data }, changes };
  }

  /** Brings everything up to `now`, so that a promise past its deadline is found as what it is. */
  #converge(now: number): Transition["changes"] {
    const changes = [];
    for (let tick = this.tick(now); tick.changes.length + tick.rested > 0; tick = this.tick(now)) {
      changes.push(...tick.changes);
    }
    return changes;
  }
}

/** For requests that come from no client. */
const HEAD = { corrId: "", version: "" };

const SEARCHES = {
  "promise.search": { table: "promises", get: "promise.get", list: "promises" },
  "task.search": { table: "tasks", get: "task.get", list: "tasks" },
  "schedule.search": { table: "schedules", get: "schedule.get", list: "schedules" },
} as const;
