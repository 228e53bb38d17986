/** The tables, the same in both hosts. */
import { IS_FIRST_GENERATION_SQL, isLimitSql } from "../../core/resonate/index.ts";

/** Raised with each change of the tables. A server opens tables of its own version alone. */
export const SCHEMA_VERSION = 1;

/**
 * Times are REAL: a lease may expire after the largest integer that JavaScript can read back, and a double holds that time.
 * `promises.timer` is the time-out of a pending promise with a target. `tasks.timer` is when a pending task is dispatched
 * again (`timer_type` 0) or an acquired task's lease expires (1). `offered_to` is the address of a pending task's last dispatch.
 */
export const TABLES: readonly string[] = [
  `CREATE TABLE promises (
    id TEXT PRIMARY KEY, state TEXT NOT NULL, param TEXT NOT NULL, value TEXT NOT NULL, tags TEXT NOT NULL,
    branch TEXT, timeoutAt REAL NOT NULL, createdAt REAL NOT NULL, settledAt REAL, timer REAL
  ) STRICT`,
  "CREATE INDEX promises_branch ON promises (branch, id) WHERE branch IS NOT NULL",
  "CREATE INDEX promises_state ON promises (state, id)",
  "CREATE INDEX promises_due ON promises (timeoutAt) WHERE state = 'pending'",
  "CREATE TABLE callbacks (awaited TEXT, awaiter TEXT, PRIMARY KEY (awaited, awaiter)) STRICT, WITHOUT ROWID",
  "CREATE INDEX callbacks_awaiter ON callbacks (awaiter)",
  "CREATE TABLE listeners (promise TEXT, address TEXT, PRIMARY KEY (promise, address)) STRICT, WITHOUT ROWID",
  "CREATE INDEX listeners_address ON listeners (address)",
  `CREATE TABLE tasks (
    id TEXT PRIMARY KEY, state TEXT NOT NULL, version INTEGER NOT NULL, pid TEXT, ttl REAL, resumes TEXT NOT NULL,
    timer REAL, timer_type INTEGER, offered_to TEXT
  ) STRICT`,
  "CREATE INDEX tasks_state ON tasks (state, id)",
  "CREATE INDEX tasks_due ON tasks (timer) WHERE timer IS NOT NULL",
  "CREATE TABLE schedules (id TEXT PRIMARY KEY, record TEXT NOT NULL, tags TEXT NOT NULL, timer REAL NOT NULL) STRICT",
  "CREATE INDEX schedules_due ON schedules (timer)",
  `CREATE INDEX promises_ended ON promises (settledAt, id) WHERE settledAt IS NOT NULL AND ${IS_FIRST_GENERATION_SQL}`,
  `CREATE INDEX promises_limits ON promises (settledAt, id) WHERE settledAt IS NOT NULL AND (${isLimitSql("instr")})`,
];
