/**
 * The records that one request touches. Each is read from the store at its first use, and the changed ones are written at
 * the end, so that the cost of a request does not grow with the number of stored promises.
 */
import type { Schedule, State, StoredPromise, Task } from "./records.ts";
import type { Store } from "./store.ts";

/** The records of one table that have been read or put. Undefined stands for a record that does not exist. */
class Records<V> {
  readonly #load: (id: string) => V | undefined;
  readonly #initial = new Map<string, V | undefined>();
  readonly #current = new Map<string, V | undefined>();

  constructor(load: (id: string) => V | undefined) {
    this.#load = load;
  }

  get(id: string): V | undefined {
    if (this.#current.has(id)) return this.#current.get(id);
    const record = this.#load(id);
    this.#initial.set(id, record);
    this.#current.set(id, record);
    return record;
  }

  put(id: string, record: V | undefined): void {
    this.get(id);
    this.#current.set(id, record);
  }

  all(): V[] {
    return [...this.#current.values()].filter((record) => record !== undefined);
  }

  /** The changed records, each with the record in the store. */
  changes(): { id: string; record: V | undefined; initial: V | undefined }[] {
    return [...this.#current]
      .map(([id, record]) => ({ id, record, initial: this.#initial.get(id) }))
      .filter(({ record, initial }) => record !== initial);
  }
}

export class WorkingSet implements State {
  readonly #store: Store;
  readonly #promises: Records<StoredPromise>;
  readonly #tasks: Records<Task>;
  readonly #schedules: Records<Schedule>;

  constructor(store: Store) {
    this.#store = store;
    this.#promises = new Records((id) => store.promise(id));
    this.#tasks = new Records((id) => store.task(id));
    this.#schedules = new Records((id) => store.schedule(id));
  }

  promise(id: string): StoredPromise | undefined {
    return this.#promises.get(id);
  }

  task(id: string): Task | undefined {
    return this.#tasks.get(id);
  }

  schedule(id: string): Schedule | undefined {
    return this.#schedules.get(id);
  }

  branch(name: string): StoredPromise[] {
    // This misses a promise that the same request creates, but no request creates a promise and asks for its siblings.
    const ids = this.#store.ids("promises", "WHERE branch = ? ORDER BY id", name);
    return ids.map((id) => this.promise(id)).filter((promise) => promise !== undefined);
  }

  awaitedBy(task: string): StoredPromise[] {
    for (const id of this.#store.awaitedBy(task)) this.promise(id);
    return this.#promises.all().filter(({ callbacks }) => callbacks.has(task));
  }

  putPromise(promise: StoredPromise): void {
    this.#promises.put(promise.id, promise);
  }

  putTask(task: Task): void {
    this.#tasks.put(task.id, task);
  }

  putSchedule(schedule: Schedule): void {
    this.#schedules.put(schedule.id, schedule);
  }

  deleteSchedule(id: string): void {
    this.#schedules.put(id, undefined);
  }

  write(): void {
    for (const { record, initial } of this.#promises.changes()) if (record) this.#store.putPromise(record, initial);
    for (const { record } of this.#tasks.changes()) if (record) this.#store.putTask(record);
    for (const { id, record } of this.#schedules.changes())
      record ? this.#store.putSchedule(record) : this.#store.deleteSchedule(id);
  }
}
