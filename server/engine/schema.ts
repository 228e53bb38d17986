/** The tables, the same in every host. */
import { IS_FIRST_GENERATION_SQL, isBookkeepingSql } from "../../core/store/ids.ts";

/**
 * Times are REAL: a lease may reach past the largest integer that JavaScript can read back, and a double holds it.
 * `timer` is the time-out that the state machine keeps for the row; it keeps none for a promise without a target.
 * `offered_to` is where the last `execute` message went, as long as nobody has claimed the task.
 */
export const SCHEMA = `
  CREATE TABLE promises (
    id TEXT PRIMARY KEY, state TEXT NOT NULL, param TEXT NOT NULL, value TEXT NOT NULL, tags TEXT NOT NULL,
    branch TEXT, timeoutAt REAL NOT NULL, createdAt REAL NOT NULL, settledAt REAL, timer REAL
  ) STRICT;
  CREATE INDEX promises_branch ON promises (branch, id) WHERE branch IS NOT NULL;
  CREATE INDEX promises_state ON promises (state, id);
  CREATE INDEX promises_due ON promises (timeoutAt) WHERE state = 'pending';
  CREATE TABLE callbacks (awaited TEXT, awaiter TEXT, PRIMARY KEY (awaited, awaiter)) STRICT, WITHOUT ROWID;
  CREATE INDEX callbacks_awaiter ON callbacks (awaiter);
  CREATE TABLE listeners (promise TEXT, address TEXT, PRIMARY KEY (promise, address)) STRICT, WITHOUT ROWID;
  CREATE INDEX listeners_address ON listeners (address);
  CREATE TABLE tasks (
    id TEXT PRIMARY KEY, state TEXT NOT NULL, version INTEGER NOT NULL, pid TEXT, ttl REAL, resumes TEXT NOT NULL,
    timer REAL, timer_type INTEGER, offered_to TEXT
  ) STRICT;
  CREATE INDEX tasks_state ON tasks (state, id);
  CREATE INDEX tasks_due ON tasks (timer) WHERE timer IS NOT NULL;
  CREATE TABLE schedules (id TEXT PRIMARY KEY, record TEXT NOT NULL, tags TEXT NOT NULL, timer REAL NOT NULL) STRICT;
  CREATE INDEX schedules_due ON schedules (timer);
`;

/** Finds jobs, and what counts, limits and lists them, by when they ended. A file of the versions before has none: an index changes nothing that they would see. */
export const ENDED = `
  CREATE INDEX IF NOT EXISTS promises_ended ON promises (settledAt, id)
  WHERE settledAt IS NOT NULL AND ${IS_FIRST_GENERATION_SQL};
  DROP INDEX IF EXISTS promises_aids;
  CREATE INDEX IF NOT EXISTS promises_aiding ON promises (settledAt, id)
  WHERE settledAt IS NOT NULL AND (${isBookkeepingSql("instr")});
`;
