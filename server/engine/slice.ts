/**
 * The part of the stored state that one request touches.
 *
 * The state machine keeps its state in maps and arrays and walks through all of them: every promise when a task is
 * fulfilled or acquired, every time-out when one is set. Over the whole state that would make each request slower
 * with each job there is. So it is handed maps that begin empty and read a row when it first asks for it: what it
 * sees is always right, and what a request costs depends on what it touches, with ten promises stored or a million.
 */
import type { Change, StateMachine, StoredPromise, Timeout } from "./state-machine.ts";
import type { Store } from "./store.ts";

class Rows<V> extends Map<string, V> {
  readonly #asked = new Set<string>();
  readonly #load: (id: string) => V | undefined;

  constructor(load: (id: string) => V | undefined) {
    super();
    this.#load = load;
  }

  override get(id: string): V | undefined {
    if (!this.#asked.has(id)) {
      this.#asked.add(id);
      const row = this.#load(id);
      if (row) super.set(id, row);
    }
    return super.get(id);
  }

  override set(id: string, row: V): this {
    this.#asked.add(id);
    return super.set(id, row);
  }

  override has(id: string): boolean {
    return this.get(id) !== undefined;
  }
}

/**
 * The state machine walks through all promises for two purposes: to take a settled task out of the callbacks of what
 * it waited for, and to collect the promises of one branch. For the first, this reads what the tasks at hand wait for
 * before the walk begins; for the second, the engine reads the branch beforehand.
 */
class PromiseRows extends Rows<StoredPromise> {
  readonly #awaitedBy: (task: string) => string[];
  readonly #followed = new Set<string>();

  constructor(load: (id: string) => StoredPromise | undefined, awaitedBy: (task: string) => string[]) {
    super(load);
    this.#awaitedBy = awaitedBy;
  }

  override *[Symbol.iterator](): MapIterator<[string, StoredPromise]> {
    for (const id of [...this.keys()]) {
      if (this.#followed.has(id)) continue;
      this.#followed.add(id);
      for (const awaited of this.#awaitedBy(id)) this.get(awaited);
    }
    return yield* super[Symbol.iterator]();
  }
}

export class Slice {
  readonly #store: Store;
  readonly #machine: StateMachine;
  /** What the store holds of the promises read so far; the state machine changes those in its maps in place. */
  readonly #stored = new Map<string, StoredPromise>();

  /** Empties `machine` and makes it read from `store`. */
  constructor(store: Store, machine: StateMachine) {
    this.#store = store;
    this.#machine = machine;
    machine.pTimeouts = [];
    machine.tTimeouts = [];
    machine.sTimeouts = [];
    machine.outgoing = [];
    machine.promises = new PromiseRows(
      (id) => this.#promise(id),
      (task) => store.awaitedBy(task),
    );
    machine.tasks = new Rows((id) => {
      const row = store.task(id);
      if (row?.timeout !== undefined) {
        machine.tTimeouts.push({ id, timeout: row.timeout, ...(row.type !== undefined && { type: row.type }) });
      }
      return row?.value;
    });
    machine.schedules = new Rows((id) => {
      const row = store.schedule(id);
      if (row?.timeout !== undefined) machine.sTimeouts.push({ id, timeout: row.timeout });
      return row?.value;
    });
  }

  #promise(id: string): StoredPromise | undefined {
    const row = this.#store.promise(id);
    if (!row) return undefined;
    const { value, timeout } = row;
    if (timeout !== undefined) this.#machine.pTimeouts.push({ id, timeout });
    this.#stored.set(id, { ...value, callbacks: new Set(value.callbacks), listeners: new Set(value.listeners) });
    return value;
  }

  /** Writes the rows that `changes` names as they are now. */
  write(changes: Change[]): void {
    const { promises, tasks, schedules, pTimeouts, tTimeouts, sTimeouts } = this.#machine;
    const touched = touchedIds(changes);
    for (const id of touched.promises) {
      const value = promises.get(id);
      if (value) this.#store.putPromise({ value, timeout: of(pTimeouts, id)?.timeout }, this.#stored.get(id));
    }
    for (const id of touched.tasks) {
      const value = tasks.get(id);
      const timer = of(tTimeouts, id);
      if (value) this.#store.putTask({ value, timeout: timer?.timeout, type: timer?.type }, touched.dispatches.get(id));
    }
    for (const id of touched.schedules) {
      const value = schedules.get(id);
      if (value) this.#store.putSchedule({ value, timeout: of(sTimeouts, id)?.timeout });
      else this.#store.deleteSchedule(id);
    }
  }
}

function of(timeouts: Timeout[], id: string): Timeout | undefined {
  return timeouts.find((timeout) => timeout.id === id);
}

/** Which rows were changed, by table, and the addresses of the `execute` messages sent for tasks. */
function touchedIds(changes: Change[]) {
  const touched = {
    promises: new Set<string>(),
    tasks: new Set<string>(),
    schedules: new Set<string>(),
    dispatches: new Map<string, string>(),
  };
  for (const change of changes) {
    if (change.kind !== "message.send") touched[TABLES[change.kind]].add(idOf(change));
    else if (change.message.kind === "execute") touched.dispatches.set(change.message.data.task.id, change.address);
  }
  return touched;
}

type RowChange = Exclude<Change, { kind: "message.send" }>;

const TABLES: Record<RowChange["kind"], "promises" | "tasks" | "schedules"> = {
  "promise.set": "promises",
  "ptimeout.set": "promises",
  "ptimeout.del": "promises",
  "task.set": "tasks",
  "ttimeout.set": "tasks",
  "ttimeout.del": "tasks",
  "schedule.set": "schedules",
  "schedule.del": "schedules",
  "stimeout.set": "schedules",
  "stimeout.del": "schedules",
};

function idOf(change: RowChange): string {
  if ("promise" in change) return change.promise.id;
  if ("task" in change) return change.task.id;
  if ("schedule" in change) return change.schedule.id;
  return "timeout" in change ? change.timeout.id : change.id;
}
