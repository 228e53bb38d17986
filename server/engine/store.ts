/**
 * Promises, tasks and schedules as rows of the database. A row is written whole and replaced in place, so the file
 * grows with the number of jobs and not with how often they are touched.
 */
import { belowSql, CHILD, GENERATION, IS_FIRST_GENERATION_SQL, isBookkeepingSql } from "../../core/store/ids.ts";
import type { Row, Sql, SqlValue } from "./sql.ts";
import type { Schedule, StoredPromise, Task } from "./state-machine.ts";

/** A row and the time-out that the state machine keeps beside it, in milliseconds since the epoch. */
export interface Timed<V> {
  value: V;
  timeout: number | undefined;
}
export type TimedTask = Timed<Task> & { type: 0 | 1 | undefined };

/** A place in the order in which unclaimed tasks wait: by when each is dispatched again, then by id. */
export interface Place {
  timer: number;
  id: string;
}

/** An `execute` message that was sent for a task which nobody has claimed yet. */
export interface Offer extends Place {
  version: number;
  address: string;
}

/**
 * What is added to the time at which an unclaimed task is dispatched again, to put it to rest: nobody of its group is
 * connected, so that dispatching it is of no use and would be paid for. Whoever connects gets it all the same, and those at
 * rest keep their order. In milliseconds: the sum is a time that the platform's dates can tell.
 */
const REST = 5e12;

/**
 * When an unclaimed task is dispatched again, in milliseconds: what the state machine has at first. Each time is a row that is
 * paid for, so the pauses double, up to an hour. Of such a task `ttl` has the pause.
 */
const AGAIN = 30_000;
const LONGEST_PAUSE = 3_600_000;

/** A task that is due; where nobody has claimed it, with the address that it was offered to. */
export interface DueTask {
  id: string;
  version: number;
  offeredTo: string | null;
}

/** The group of an address: what follows `poll://any@` or `poll://uni@`, up to a slash. */
const GROUP = "substr(offered_to, 12, instr(substr(offered_to, 12) || '/', '/') - 1)";

/** The most that a promise's param, value and tags may have together, in bytes: what a Durable Object takes in a row. */
export const MAX_ROW = 2 * 1024 * 1024;

/** A promise would have more in it than a row takes. */
export class TooLarge extends Error {
  constructor(id: string) {
    super(`Param, value and tags of ${id} may have ${MAX_ROW} bytes together`);
  }
}

/** Where there is something of a job, and by what column. */
export const PARTS = [
  ["callbacks", "awaited"],
  ["listeners", "promise"],
  ["tasks", "id"],
  ["promises", "id"],
] as const;

export class Store {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** See {@link Sql.transaction}. */
  transaction<T>(work: () => T): T {
    return this.#sql.transaction(work);
  }

  /** See {@link Sql.attempt}. */
  attempt<T>(work: () => T): T {
    return this.#sql.attempt(work);
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
      ttl: row.state === "pending" ? undefined : optional(ttl),
      resumes: new Set(json<string[]>(resumes)),
    } as Task;
    return { value: task, timeout: optional(timer), type: optional(timer_type) };
  }

  schedule(id: string): Timed<Schedule> | undefined {
    const row = this.#one("SELECT record, timer FROM schedules WHERE id = ?", id);
    return row && { value: json(row.record), timeout: optional(row.timer) };
  }

  /**
   * Writes a promise. `stored` is what the store holds of it: of callbacks and listeners only the difference is written.
   *
   * @throws {TooLarge}
   */
  putPromise({ value: p, timeout }: Timed<StoredPromise>, stored: StoredPromise | undefined): void {
    const [param, value, tags] = [p.param, p.value, p.tags].map((part) => JSON.stringify(part)) as [
      string,
      string,
      string,
    ];
    if (sizeOf(param + value + tags) > MAX_ROW) throw new TooLarge(p.id);
    this.#run(
      `INSERT INTO promises VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
         state = excluded.state, value = excluded.value, settledAt = excluded.settledAt, timer = excluded.timer`,
      p.id,
      p.state,
      param,
      value,
      tags,
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
  ids(table: "promises" | "tasks" | "schedules", clauses: string, ...values: SqlValue[]): string[] {
    return this.#column(`SELECT id FROM ${table} ${clauses}`, ...values);
  }

  /** The ids of the promises that a task waits for. */
  awaitedBy(task: string): string[] {
    return this.#column("SELECT awaited FROM callbacks WHERE awaiter = ?", task);
  }

  /**
   * Unclaimed tasks that were offered to a group, after the one at `after`, longest waiting first; those at rest after the
   * others. Without those that are left alone until later than `before`, where it is given.
   */
  offers(group: string, after: Place, limit: number, before = REST): Offer[] {
    const rows = this.#all(
      `SELECT id, version, offered_to AS address, timer FROM tasks INDEXED BY tasks_due
       WHERE timer IS NOT NULL AND timer >= ? AND (timer > ? OR id > ?) AND state = 'pending'
         AND ${GROUP} = ? AND (timer <= ? OR timer >= ${REST}) ORDER BY timer, id LIMIT ?`,
      after.timer,
      after.timer,
      after.id,
      group,
      before,
      limit,
    );
    return rows as unknown as Offer[];
  }

  /** The pending promises that are due, in their order. Left to itself, SQLite would go through all that are pending. */
  duePromises(now: number, limit: number): string[] {
    return this.#column(
      `SELECT id FROM promises INDEXED BY promises_due
       WHERE state = 'pending' AND timeoutAt <= ? ORDER BY timeoutAt LIMIT ?`,
      now,
      limit,
    );
  }

  /** The tasks that are due, in their order; unclaimed ones with the address that they were offered to. */
  dueTasks(now: number, limit: number): DueTask[] {
    const rows = this.#all(
      `SELECT id, version, CASE state WHEN 'pending' THEN offered_to END AS offeredTo FROM tasks
       WHERE timer <= ? ORDER BY timer LIMIT ?`,
      now,
      limit,
    );
    return rows as unknown as DueTask[];
  }

  /** Puts an unclaimed task to rest. */
  rest(id: string): void {
    this.#run(`UPDATE tasks SET timer = timer + ${REST} WHERE id = ? AND state = 'pending' AND timer < ${REST}`, id);
  }

  /** Has an unclaimed task dispatched again in a while, as one that was just dispatched. */
  wake(id: string, now: number): void {
    this.#run("UPDATE tasks SET timer = ?, ttl = NULL WHERE id = ? AND state = 'pending'", now + AGAIN, id);
  }

  /** Has an unclaimed task dispatched again after a pause, twice as long as the one before. */
  pause(id: string, now: number): void {
    const pause = `min(coalesce(2 * ttl, ${AGAIN}), ${LONGEST_PAUSE})`;
    this.#run(`UPDATE tasks SET timer = ? + ${pause}, ttl = ${pause} WHERE id = ? AND state = 'pending'`, now, id);
  }

  /** Leaves an unclaimed task alone for a while, for which there was no code; one that was paused when it was dispatched is. */
  leaveAlone(id: string, now: number): void {
    this.#run(
      `UPDATE tasks SET timer = ?1 + ${AGAIN}, ttl = ${AGAIN} WHERE id = ?2 AND state = 'pending' AND ttl IS NULL`,
      now,
      id,
    );
  }

  /** When something is due next, in milliseconds since the epoch; what is at rest never is. */
  due(): number | undefined {
    const row = this.#one(
      `SELECT min((SELECT coalesce(min(timeoutAt), 9e999) FROM promises INDEXED BY promises_due WHERE state = 'pending'),
                  (SELECT coalesce(min(timer), 9e999) FROM tasks INDEXED BY tasks_due WHERE timer IS NOT NULL),
                  (SELECT coalesce(min(timer), 9e999) FROM schedules)) AS due`,
    );
    const due = row?.due as number;
    return due >= REST ? undefined : due;
  }

  /**
   * The jobs that ended before `now`, those that ended first before others, after the one at `after`: promises with a task
   * that are below no other and the first of their name.
   */
  ended({ settledAt, id }: { settledAt: number; id: string }, now: number, limit: number) {
    const rows = this.#all(
      `SELECT id, settledAt FROM promises INDEXED BY promises_ended
       WHERE settledAt IS NOT NULL AND ${IS_FIRST_GENERATION_SQL}
         AND (settledAt, id) > (?, ?) AND settledAt <= ? AND EXISTS (SELECT 1 FROM tasks WHERE tasks.id = promises.id) ORDER BY settledAt, id LIMIT ?`,
      settledAt,
      id,
      now,
      limit,
    );
    return rows as unknown as { id: string; settledAt: number }[];
  }

  /** What counts, limits or lists jobs, as far as an id tells it, and ended before `before`: as {@link ended}. */
  endedAids({ settledAt, id }: { settledAt: number; id: string }, before: number, limit: number) {
    const rows = this.#all(
      `SELECT id, settledAt, tags FROM promises
       WHERE settledAt IS NOT NULL AND (${isBookkeepingSql("instr")})
         AND (settledAt, id) > (?, ?) AND settledAt <= ? ORDER BY settledAt, id LIMIT ?`,
      settledAt,
      id,
      before,
      limit,
    );
    return rows as unknown as { id: string; settledAt: number; tags: string }[];
  }

  has(id: string): boolean {
    return this.#one("SELECT 1 FROM promises WHERE id = ?", id) !== undefined;
  }

  /** Removes one promise that has no task and nothing below it. */
  removeOne(id: string): void {
    this.#run("DELETE FROM listeners WHERE promise = ?", id);
    this.#run("DELETE FROM callbacks WHERE awaited = ?", id);
    this.#run("DELETE FROM promises WHERE id = ?", id);
  }

  /** The generations of the job whose first is `id`. */
  generations(id: string): { state: string; settledAt: number | null; tags: string }[] {
    const rows = this.#all(
      `SELECT state, settledAt, tags FROM promises
       WHERE id = ?1 OR (${belowSql("id", GENERATION)} AND instr(id, '${CHILD}') = 0)`,
      id,
    );
    return rows as unknown as { state: string; settledAt: number | null; tags: string }[];
  }

  /** Removes all generations of a job, and all that is below them. */
  remove(id: string): void {
    for (const [table, column] of PARTS) {
      this.#run(
        `DELETE FROM ${table} WHERE ${column} = ?1 OR (${belowSql(column, CHILD)})
           OR (${belowSql(column, GENERATION)})`,
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
    this.#sql.close();
  }

  #run(statement: string, ...values: SqlValue[]): void {
    this.#sql.run(statement, ...values);
  }

  #one(statement: string, ...values: SqlValue[]): Row | undefined {
    return this.#sql.all(statement, ...values)[0];
  }

  #all(statement: string, ...values: SqlValue[]): Row[] {
    return this.#sql.all(statement, ...values);
  }

  #column(statement: string, ...values: SqlValue[]): string[] {
    return this.#all(statement, ...values).map((row) => Object.values(row)[0] as string);
  }
}

const utf8 = new TextEncoder();

/** In bytes; only what could be too much is measured. */
function sizeOf(text: string): number {
  return text.length * 3 <= MAX_ROW ? text.length : utf8.encode(text).length;
}

function json<T>(column: SqlValue | undefined): T {
  return JSON.parse(column as string) as T;
}

function optional<T extends SqlValue>(column: SqlValue | undefined): T | undefined {
  return column === null ? undefined : (column as T);
}
