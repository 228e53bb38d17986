/**
 * The queue of unclaimed tasks, as rows of the table of tasks. An unclaimed task is dispatched again at growing intervals; it is
 * parked while its group has no worker, and deferred if a runner has no code for it.
 */
import type { Sql } from "./sql.ts";

/** A position in the queue of unclaimed tasks, which is ordered by the time of their next dispatch, then by id. */
export interface QueuePosition {
  timer: number;
  id: string;
}

/** A dispatched task that no worker has claimed yet. */
export interface UnclaimedTask extends QueuePosition {
  version: number;
  address: string;
}

/**
 * Added to the timer of an unclaimed task to park it while no worker of its group is connected: another dispatch would cost
 * a row and reach no one. Parked tasks keep their order. The sum is still a valid JavaScript date.
 */
export const PARKING_MS = 5e12;

/**
 * The interval at which an unclaimed task is dispatched again. Each dispatch writes a row, which is charged for, so the interval
 * doubles, up to an hour. The column `ttl` of an unclaimed task holds its interval.
 */
const FIRST_DISPATCH_INTERVAL_MS = 30_000;
const MAX_DISPATCH_INTERVAL_MS = 3_600_000;

/** A task that is due. `dispatchedTo` is the address of an unclaimed task's last dispatch. */
export interface DueTask {
  id: string;
  version: number;
  dispatchedTo: string | null;
}

/** The group of an address: the part after `poll://any@` or `poll://uni@`, up to a slash. */
const GROUP_SQL = "substr(offered_to, 12, instr(substr(offered_to, 12) || '/', '/') - 1)";

export class TaskQueue {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /**
   * The unclaimed tasks of a group after the one at `after`, longest waiting first, the parked ones last. `before` leaves out
   * the tasks that are deferred until later than that time.
   */
  tasksOf(group: string, after: QueuePosition, limit: number, before = PARKING_MS): UnclaimedTask[] {
    return this.#sql.all(
      `SELECT id, version, offered_to AS address, timer FROM tasks INDEXED BY tasks_due
       WHERE timer IS NOT NULL AND timer >= ? AND (timer > ? OR id > ?) AND state = 'pending'
         AND ${GROUP_SQL} = ? AND (timer <= ? OR timer >= ${PARKING_MS}) ORDER BY timer, id LIMIT ?`,
      after.timer,
      after.timer,
      after.id,
      group,
      before,
      limit,
    ) as unknown as UnclaimedTask[];
  }

  /** The tasks that are due, earliest first: unclaimed ones, and those whose lease has run out. */
  dueTasks(now: number, limit: number): DueTask[] {
    return this.#sql.all(
      `SELECT id, version, CASE state WHEN 'pending' THEN offered_to END AS dispatchedTo FROM tasks
       WHERE timer <= ? ORDER BY timer LIMIT ?`,
      now,
      limit,
    ) as unknown as DueTask[];
  }

  /** Stops the repeated dispatch of an unclaimed task until it is unparked. */
  park(id: string): void {
    this.#sql.run(
      `UPDATE tasks SET timer = timer + ${PARKING_MS} WHERE id = ? AND state = 'pending' AND timer < ${PARKING_MS}`,
      id,
    );
  }

  /** Restarts the interval of a parked or deferred task that has just been dispatched. */
  unpark(id: string, now: number): void {
    this.#sql.run(
      "UPDATE tasks SET timer = ?, ttl = NULL WHERE id = ? AND state = 'pending'",
      now + FIRST_DISPATCH_INTERVAL_MS,
      id,
    );
  }

  /** Schedules the next dispatch of an unclaimed task after twice its last interval. */
  backOff(id: string, now: number): void {
    const interval = `min(coalesce(2 * ttl, ${FIRST_DISPATCH_INTERVAL_MS}), ${MAX_DISPATCH_INTERVAL_MS})`;
    this.#sql.run(
      `UPDATE tasks SET timer = ? + ${interval}, ttl = ${interval} WHERE id = ? AND state = 'pending'`,
      now,
      id,
    );
  }

  /** Schedules the next dispatch of an unclaimed task after the first interval, unless it has an interval already. */
  defer(id: string, now: number): void {
    this.#sql.run(
      `UPDATE tasks SET timer = ?1 + ${FIRST_DISPATCH_INTERVAL_MS}, ttl = ${FIRST_DISPATCH_INTERVAL_MS}
       WHERE id = ?2 AND state = 'pending' AND ttl IS NULL`,
      now,
      id,
    );
  }
}
