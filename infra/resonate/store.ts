/**
 * Promises, tasks and schedules as rows of the database. A row is written whole and replaced in place, so the file
 * grows with the number of jobs and not with how often they are touched.
 */
import type { DatabaseSync, SQLInputValue, SQLOutputValue } from "node:sqlite";
import type { Schedule, StoredPromise, Task } from "./state-machine.ts";

/** A row and the time-out that the state machine keeps beside it, in milliseconds since the epoch. */
export interface Timed<V> {
  value: V;
  timeout: number | undefined;
}
export type TimedTask = Timed<Task> & { type: 0 | 1 | undefined };

/** An `execute` message that was sent for a task which nobody has claimed yet. */
export interface Dispatch {
  id: string;
  version: number;
  address: string;
}

/** Where there is something of a job, and by what column. */
const PARTS = [
  ["callbacks", "awaited"],
  ["listeners", "promise"],
  ["tasks", "id"],
  ["promises", "id"],
] as const;

type Row = Record<string, SQLOutputValue>;

export class Store {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, ReturnType<DatabaseSync["prepare"]>>();

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  /** Runs `work` and commits: on disk when this returns. Undoes everything and rethrows when it throws. */
  transaction<T>(work: () => T): T {
    this.#run("BEGIN");
    try {
      const result = work();
      this.#run("COMMIT");
      return result;
    } catch (error) {
      // SQLite itself may have rolled back already, for example when the disk is full.
      if (this.#db.isTransaction) this.#run("ROLLBACK");
      throw error;
    }
  }

  /** Runs `work` within a transaction. Undoes what `work` wrote, and no more, and rethrows when it throws. */
  attempt<T>(work: () => T): T {
    // Without one, the savepoint would commit on its own what its caller then takes for undone.
    if (!this.#db.isTransaction) throw new Error("the transaction was rolled back");
    this.#run("SAVEPOINT attempt");
    try {
      const result = work();
      this.#run("RELEASE attempt");
      return result;
    } catch (error) {
      if (this.#db.isTransaction) {
        this.#run("ROLLBACK TO attempt");
        this.#run("RELEASE attempt");
      }
      throw error;
    }
  }

  promise(id: string): Timed<StoredPromise> | undefined {
    const row = this.#one(
      `SELECT *, (SELECT json_group_array(awaiter) FROM callbacks WHERE awaited = id) AS callbacks,
              (SELECT json_group_array(address) FROM listeners WHERE promise = id) AS listeners
       FROM promises WHERE id = ?`,
      id,
    );
    if (!row) return undefined;
    const { branch, timer, param, value, tags, callbacks, listeners, ...columns } = row;
    const promise = {
      ...columns,
      param: json(param),
      value: json(value),
      tags: json(tags),
      callbacks: new Set(json<string[]>(callbacks)),
      listeners: new Set(json<string[]>(listeners)),
    } as StoredPromise;
    return { value: promise, timeout: optional(timer) };
  }

  task(id: string): TimedTask | undefined {
    const row = this.#one("SELECT * FROM tasks WHERE id = ?", id);
    if (!row) return undefined;
    const { timer, timer_type, offered_to, pid, ttl, resumes, ...columns } = row;
    const task = {
      ...columns,
      pid: optional(pid),
      ttl: optional(ttl),
      resumes: new Set(json<string[]>(resumes)),
    } as Task;
    return { value: task, timeout: optional(timer), type: optional(timer_type) };
  }

  schedule(id: string): Timed<Schedule> | undefined {
    const row = this.#one("SELECT record, timer FROM schedules WHERE id = ?", id);
    return row && { value: json(row.record), timeout: optional(row.timer) };
  }

  /** Writes a promise. `stored` is what the store holds of it: of callbacks and listeners only the difference is written. */
  putPromise({ value: p, timeout }: Timed<StoredPromise>, stored: StoredPromise | undefined): void {
    this.#run(
      `INSERT INTO promises VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
         state = excluded.state, value = excluded.value, settledAt = excluded.settledAt, timer = excluded.timer`,
      p.id,
      p.state,
      JSON.stringify(p.param),
      JSON.stringify(p.value),
      JSON.stringify(p.tags),
      p.tags["resonate:branch"] ?? null,
      p.timeoutAt,
      p.createdAt,
      p.settledAt,
      timeout ?? null,
    );
    for (const awaiter of stored?.callbacks ?? []) {
      if (!p.callbacks.has(awaiter))
        this.#run("DELETE FROM callbacks WHERE awaited = ? AND awaiter = ?", p.id, awaiter);
    }
    for (const awaiter of p.callbacks) {
      if (!stored?.callbacks.has(awaiter)) this.#run("INSERT INTO callbacks VALUES (?, ?)", p.id, awaiter);
    }
    for (const address of stored?.listeners ?? []) {
      if (!p.listeners.has(address))
        this.#run("DELETE FROM listeners WHERE promise = ? AND address = ?", p.id, address);
    }
    for (const address of p.listeners) {
      if (!stored?.listeners.has(address)) this.#run("INSERT INTO listeners VALUES (?, ?)", p.id, address);
    }
  }

  /** Writes a task. `dispatchedTo` is the address of the `execute` message just sent for it, if one was. */
  putTask({ value: t, timeout, type }: TimedTask, dispatchedTo: string | undefined): void {
    this.#run(
      `INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
         state = excluded.state, version = excluded.version, pid = excluded.pid, ttl = excluded.ttl,
         resumes = excluded.resumes, timer = excluded.timer, timer_type = excluded.timer_type,
         offered_to = CASE excluded.state WHEN 'pending' THEN coalesce(excluded.offered_to, offered_to) END`,
      t.id,
      t.state,
      t.version,
      t.pid ?? null,
      t.ttl ?? null,
      JSON.stringify([...t.resumes]),
      timeout ?? null,
      type ?? null,
      dispatchedTo ?? null,
    );
  }

  putSchedule({ value: s, timeout }: Timed<Schedule>): void {
    this.#run(
      `INSERT INTO schedules VALUES (?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET record = excluded.record, timer = excluded.timer`,
      s.id,
      JSON.stringify(s),
      JSON.stringify(s.promiseTags),
      timeout ?? null,
    );
  }

  deleteSchedule(id: string): void {
    this.#run("DELETE FROM schedules WHERE id = ?", id);
  }

  /** The ids of a table's rows, restricted and ordered by `clauses`. */
  ids(table: "promises" | "tasks" | "schedules", clauses: string, ...values: SQLInputValue[]): string[] {
    return this.#column(`SELECT id FROM ${table} ${clauses}`, ...values);
  }

  /** The ids of the promises that a task waits for. */
  awaitedBy(task: string): string[] {
    return this.#column("SELECT awaited FROM callbacks WHERE awaiter = ?", task);
  }

  /** The unclaimed tasks, longest waiting first. */
  dispatches(): Dispatch[] {
    const rows = this.#all(
      `SELECT id, version, offered_to AS address FROM tasks
       WHERE state = 'pending' AND offered_to IS NOT NULL ORDER BY timer`,
    );
    return rows as unknown as Dispatch[];
  }

  /**
   * The jobs that ended before `now`, those that ended first before others, after the one at `after`: promises with a task
   * that are below no other and the first of their name.
   */
  ended({ settledAt, id }: { settledAt: number; id: string }, now: number, limit: number) {
    const rows = this.#all(
      `SELECT id, settledAt FROM promises INDEXED BY promises_ended
       WHERE settledAt IS NOT NULL AND instr(id, ':') = 0 AND instr(id, '~') = 0
         AND (settledAt, id) > (?, ?) AND settledAt <= ? AND EXISTS (SELECT 1 FROM tasks WHERE tasks.id = promises.id) ORDER BY settledAt, id LIMIT ?`,
      settledAt,
      id,
      now,
      limit,
    );
    return rows as unknown as { id: string; settledAt: number }[];
  }

  /** The generations of the job whose first is `id`. */
  generations(id: string): { state: string; settledAt: number | null; tags: string }[] {
    const rows = this.#all(
      `SELECT state, settledAt, tags FROM promises
       WHERE id = ?1 OR (id > ?1 || '~' AND id < ?1 || char(127) AND instr(id, ':') = 0)`,
      id,
    );
    return rows as unknown as { state: string; settledAt: number | null; tags: string }[];
  }

  /** Removes all generations of a job, and all that is below them. */
  remove(id: string): void {
    for (const [table, column] of PARTS) {
      // The characters after ":" and "~".
      this.#run(
        `DELETE FROM ${table} WHERE ${column} = ?1 OR (${column} > ?1 || ':' AND ${column} < ?1 || ';')
           OR (${column} > ?1 || '~' AND ${column} < ?1 || char(127))`,
        id,
      );
    }
  }

  listenerAddresses(): string[] {
    return this.#column("SELECT DISTINCT address FROM listeners");
  }

  deleteListeners(address: string): void {
    this.#run("DELETE FROM listeners WHERE address = ?", address);
  }

  close(): void {
    this.#db.close();
  }

  #run(sql: string, ...values: SQLInputValue[]): void {
    this.#prepare(sql).run(...values);
  }

  #one(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#prepare(sql).get(...values);
  }

  #all(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#prepare(sql).all(...values);
  }

  #column(sql: string, ...values: SQLInputValue[]): string[] {
    return this.#all(sql, ...values).map((row) => Object.values(row)[0] as string);
  }

  #prepare(sql: string): ReturnType<DatabaseSync["prepare"]> {
    const known = this.#statements.get(sql);
    if (known) return known;
    const statement = this.#db.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}

function json<T>(column: SQLOutputValue | undefined): T {
  return JSON.parse(column as string) as T;
}

function optional<T extends SQLOutputValue>(column: SQLOutputValue | undefined): T | undefined {
  return column === null ? undefined : (column as T);
}
