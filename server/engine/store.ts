/**
 * Promises, tasks and schedules as rows of the database. A change replaces the row, so that the file grows with the number
 * of jobs and not with the number of changes.
 */
import {
  belowSql,
  CHILD_SEPARATOR,
  cleanUpId,
  GENERATION_SEPARATOR,
  IS_FIRST_GENERATION_SQL,
  isLimitSql,
} from "../../core/resonate/index.ts";
import type { Schedule, StoredPromise, Task } from "./records.ts";
import type { Row, Sql, SqlValue } from "./sql.ts";
import { PARKING_MS, TaskQueue } from "./task-queue.ts";

/** A position in the order in which promises settled. */
export interface EndPosition {
  settledAt: number;
  id: string;
}

/** The limit on a promise's param, value and tags together: the largest row of a Durable Object. */
const MAX_ROW_BYTES = 2 * 1024 * 1024;

/** A promise is larger than {@link MAX_ROW_BYTES}. */
export class PromiseTooLarge extends Error {
  constructor(id: string) {
    super(`Param, value and tags of ${id} may have ${MAX_ROW_BYTES} bytes together`);
  }
}

/** The tables that hold rows of jobs, each with its column of promise ids. */
export const JOB_TABLES = [
  ["callbacks", "awaited"],
  ["listeners", "promise"],
  ["tasks", "id"],
  ["promises", "id"],
] as const;

export class Store {
  readonly queue: TaskQueue;
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
    this.queue = new TaskQueue(sql);
  }

  transaction<T>(work: () => T): T {
    return this.#sql.transaction(work);
  }

  attempt<T>(work: () => T): T {
    return this.#sql.attempt(work);
  }

  promise(id: string): StoredPromise | undefined {
    const row = this.#one(
      `SELECT *, (SELECT json_group_array(awaiter) FROM callbacks WHERE awaited = id) AS callbacks,
              (SELECT json_group_array(address) FROM listeners WHERE promise = id) AS listeners
       FROM promises WHERE id = ?`,
      id,
    );
    if (!row) return undefined;
    const { branch, timer, param, value, tags, callbacks, listeners, ...columns } = row;
    return {
      ...columns,
      param: json(param),
      value: json(value),
      tags: json(tags),
      callbacks: new Set(json<string[]>(callbacks)),
      listeners: new Set(json<string[]>(listeners)),
    } as unknown as StoredPromise;
  }

  /**
   * A promise for readers alone, without callbacks and listeners. A value whose JSON has more than `maxValue` characters is left
   * out except for its headers; `omittedCharacters` is then the length of its data.
   */
  head(id: string, maxValue?: number): { promise: StoredPromise; omittedCharacters?: number } | undefined {
    // The value of a promise is ASCII, except for its headers.
    const size = "length(CAST(value AS BLOB))";
    const row = this.#one(
      `SELECT id, state, param, tags, timeoutAt, createdAt, settledAt, ${size} AS size,
              iif(${size} > ?2, NULL, value) AS value, iif(${size} > ?2, json_extract(value, '$.headers'), NULL) AS headers
       FROM promises WHERE id = ?1`,
      id,
      maxValue ?? Number.MAX_SAFE_INTEGER,
    );
    if (!row) return undefined;
    const { param, tags, size: bytes, value, headers, ...columns } = row;
    const omitted = { ...(headers !== null && { headers: json<Record<string, string>>(headers) }) };
    const promise = {
      ...columns,
      param: json(param),
      value: value === null ? omitted : json(value),
      tags: json(tags),
      callbacks: NO_IDS,
      listeners: NO_IDS,
    } as unknown as StoredPromise;
    if (value !== null) return { promise };
    return { promise, omittedCharacters: Number(bytes) - sizeOf(JSON.stringify({ ...omitted, data: "" })) };
  }

  task(id: string): Task | undefined {
    const row = this.#one("SELECT * FROM tasks WHERE id = ?", id);
    if (!row) return undefined;
    const { timer, timer_type, offered_to, pid, ttl, resumes, ...columns } = row;
    return {
      ...columns,
      pid: optional(pid),
      ttl: row.state === "pending" ? undefined : optional(ttl),
      resumes: new Set(json<string[]>(resumes)),
      timer: optional(timer),
      dispatchedTo: optional(offered_to),
    } as unknown as Task;
  }

  schedule(id: string): Schedule | undefined {
    const row = this.#one("SELECT record, timer FROM schedules WHERE id = ?", id);
    return row && { ...json<Schedule>(row.record), nextRunAt: row.timer as number };
  }

  /**
   * Writes a promise. `stored` is the promise as the store holds it: writes only the differences, and the promise's own row
   * only when its state or value differs.
   *
   * @throws {PromiseTooLarge}
   */
  putPromise(promise: StoredPromise, stored?: StoredPromise): void {
    if (!stored || !isUnchanged(promise, stored)) this.#writePromise(promise);
    const { id } = promise;
    const { callbacks = NO_IDS, listeners = NO_IDS } = stored ?? {};
    for (const awaiter of difference(callbacks, promise.callbacks))
      this.#sql.run("DELETE FROM callbacks WHERE awaited = ? AND awaiter = ?", id, awaiter);
    for (const awaiter of difference(promise.callbacks, callbacks))
      this.#sql.run("INSERT INTO callbacks VALUES (?, ?)", id, awaiter);
    for (const address of difference(listeners, promise.listeners))
      this.#sql.run("DELETE FROM listeners WHERE promise = ? AND address = ?", id, address);
    for (const address of difference(promise.listeners, listeners))
      this.#sql.run("INSERT INTO listeners VALUES (?, ?)", id, address);
  }

  #writePromise(promise: StoredPromise): void {
    const { id, state, tags, timeoutAt, createdAt, settledAt } = promise;
    const parts = [promise.param, promise.value, tags].map((part) => JSON.stringify(part));
    if (sizeOf(parts.join("")) > MAX_ROW_BYTES) throw new PromiseTooLarge(id);
    this.#sql.run(
      `INSERT INTO promises VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
         state = excluded.state, value = excluded.value, settledAt = excluded.settledAt, timer = excluded.timer`,
      id,
      state,
      ...parts,
      tags["resonate:branch"] ?? null,
      timeoutAt,
      createdAt,
      settledAt,
      state === "pending" && tags["resonate:target"] !== undefined ? timeoutAt : null,
    );
  }

  putTask({ id, state, version, pid, ttl, resumes, timer, dispatchedTo }: Task): void {
    this.#sql.run(
      `INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET
         state = excluded.state, version = excluded.version, pid = excluded.pid, ttl = excluded.ttl,
         resumes = excluded.resumes, timer = excluded.timer, timer_type = excluded.timer_type,
         offered_to = excluded.offered_to`,
      id,
      state,
      version,
      pid ?? null,
      ttl ?? null,
      JSON.stringify([...resumes]),
      timer ?? null,
      timer === undefined ? null : Number(state === "acquired"),
      dispatchedTo ?? null,
    );
  }

  putSchedule({ nextRunAt, ...schedule }: Schedule): void {
    this.#sql.run(
      `INSERT INTO schedules VALUES (?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET record = excluded.record, timer = excluded.timer`,
      schedule.id,
      JSON.stringify(schedule),
      JSON.stringify(schedule.promiseTags),
      nextRunAt,
    );
  }

  deleteSchedule(id: string): void {
    this.#sql.run("DELETE FROM schedules WHERE id = ?", id);
  }

  /** The ids of a table's rows, restricted and ordered by `clauses`. */
  ids(table: "promises" | "tasks" | "schedules", clauses: string, ...values: SqlValue[]): string[] {
    return this.#column(`SELECT id FROM ${table} ${clauses}`, ...values);
  }

  awaitedBy(task: string): string[] {
    return this.#column("SELECT awaited FROM callbacks WHERE awaiter = ?", task);
  }

  /** The pending promises that are due, earliest first. Without `INDEXED BY`, SQLite would read all pending promises. */
  duePromises(now: number, limit: number): string[] {
    return this.#column(
      `SELECT id FROM promises INDEXED BY promises_due
       WHERE state = 'pending' AND timeoutAt <= ? ORDER BY timeoutAt LIMIT ?`,
      now,
      limit,
    );
  }

  /** The earliest time at which something is due, in milliseconds since the epoch. Parked tasks are never due. */
  nextTimeout(): number | undefined {
    const row = this.#one(
      `SELECT min((SELECT coalesce(min(timeoutAt), 9e999) FROM promises INDEXED BY promises_due WHERE state = 'pending'),
                  (SELECT coalesce(min(timer), 9e999) FROM tasks INDEXED BY tasks_due WHERE timer IS NOT NULL),
                  (SELECT coalesce(min(timer), 9e999) FROM schedules)) AS due`,
    );
    const due = row?.due as number;
    return due >= PARKING_MS ? undefined : due;
  }

  /** The first generation of each job name that finished by `now`, in the order of their ends, after the given position. */
  finishedJobs({ settledAt, id }: EndPosition, now: number, limit: number): EndPosition[] {
    return this.#all<EndPosition>(
      `SELECT id, settledAt FROM promises INDEXED BY promises_ended
       WHERE settledAt IS NOT NULL AND ${IS_FIRST_GENERATION_SQL}
         AND (settledAt, id) > (?, ?) AND settledAt <= ? AND EXISTS (SELECT 1 FROM tasks WHERE tasks.id = promises.id) ORDER BY settledAt, id LIMIT ?`,
      settledAt,
      id,
      now,
      limit,
    );
  }

  /** Promises that, by their ids, limit jobs and that settled by `before`. */
  settledBookkeeping({ settledAt, id }: EndPosition, before: number, limit: number): EndPosition[] {
    return this.#all<EndPosition>(
      `SELECT id, settledAt FROM promises
       WHERE settledAt IS NOT NULL AND (${isLimitSql("instr")})
         AND (settledAt, id) > (?, ?) AND settledAt <= ? ORDER BY settledAt, id LIMIT ?`,
      settledAt,
      id,
      before,
      limit,
    );
  }

  has(id: string): boolean {
    return this.#one("SELECT 1 FROM promises WHERE id = ?", id) !== undefined;
  }

  /** Removes a promise without a task and without children. */
  removeOne(id: string): void {
    this.#sql.run("DELETE FROM listeners WHERE promise = ?", id);
    this.#sql.run("DELETE FROM callbacks WHERE awaited = ?", id);
    this.#sql.run("DELETE FROM promises WHERE id = ?", id);
  }

  /** The generations of the job whose first is `id`, and their pending clean-ups, which still need their journals. */
  generations(id: string): { state: string; settledAt: number | null; tags: string }[] {
    return this.#all<{ state: string; settledAt: number | null; tags: string }>(
      `SELECT state, settledAt, tags FROM promises
       WHERE id = ?1 OR (id = ?2 AND state = 'pending') OR (${belowSql("id", GENERATION_SEPARATOR)}
         AND (instr(id, '${CHILD_SEPARATOR}') = 0 OR (state = 'pending' AND substr(id, -length(?3)) = ?3)))`,
      id,
      cleanUpId(id),
      cleanUpId(""),
    );
  }

  /** Removes all generations of a job with their children. */
  remove(id: string): void {
    for (const [table, column] of JOB_TABLES) {
      this.#sql.run(
        `DELETE FROM ${table} WHERE ${column} = ?1 OR (${belowSql(column, CHILD_SEPARATOR)})
           OR (${belowSql(column, GENERATION_SEPARATOR)})`,
        id,
      );
    }
  }

  listenerAddresses(): string[] {
    return this.#column("SELECT DISTINCT address FROM listeners");
  }

  deleteListeners(address: string): void {
    this.#sql.run("DELETE FROM listeners WHERE address = ?", address);
  }

  close(): void {
    this.#sql.close();
  }

  #all<Columns>(statement: string, ...values: SqlValue[]): Columns[] {
    return this.#sql.all(statement, ...values) as Columns[];
  }

  #one(statement: string, ...values: SqlValue[]): Row | undefined {
    return this.#sql.all(statement, ...values)[0];
  }

  #column(statement: string, ...values: SqlValue[]): string[] {
    return this.#sql.all(statement, ...values).map((row) => Object.values(row)[0] as string);
  }
}

/** Whether the promise's row is up to date. Callbacks and listeners have rows of their own. */
const isUnchanged = (promise: StoredPromise, stored: StoredPromise): boolean =>
  promise.state === stored.state && promise.value === stored.value && promise.settledAt === stored.settledAt;

const NO_IDS: ReadonlySet<string> = new Set();
const difference = (all: ReadonlySet<string>, others: ReadonlySet<string>) =>
  [...all].filter((each) => !others.has(each));

const utf8 = new TextEncoder();

/** The size in bytes, or the length of a text that is certainly short enough, to spare encoding it. */
function sizeOf(text: string): number {
  return text.length * 3 <= MAX_ROW_BYTES ? text.length : utf8.encode(text).length;
}

function json<T>(column: SqlValue | undefined): T {
  return JSON.parse(column as string) as T;
}

function optional<T extends SqlValue>(column: SqlValue | undefined): T | undefined {
  return column === null ? undefined : (column as T);
}
