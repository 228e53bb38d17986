/** What an object knows of its caller's schedules: the index, which follows the table of jobs. */
export const SCHEDULES_TABLE = `CREATE TABLE schedules (
     id TEXT PRIMARY KEY, next_at REAL NOT NULL, after REAL NOT NULL, running TEXT, queued REAL, told TEXT NOT NULL
   ) STRICT;
   CREATE INDEX schedules_next ON schedules (next_at);
   CREATE TRIGGER schedules_added AFTER INSERT ON jobs WHEN new.kind = 'schedule' AND new.state = 'pending' BEGIN
     INSERT OR IGNORE INTO schedules VALUES (new.id, 0, 0, NULL, NULL, '[]');
   END;
   CREATE TRIGGER schedules_changed AFTER UPDATE OF state ON jobs WHEN new.kind = 'schedule' AND new.state <> 'pending' BEGIN
     DELETE FROM schedules WHERE id = new.id;
   END;
   CREATE TRIGGER schedules_removed AFTER DELETE ON jobs WHEN old.kind = 'schedule' BEGIN
     DELETE FROM schedules WHERE id = old.id;
   END;`;

/** Which schedule, by the name of its first generation, has started a job. */
export const FIRINGS_TABLE = `CREATE TABLE firings (job TEXT PRIMARY KEY, schedule TEXT NOT NULL) STRICT;
   CREATE INDEX firings_schedule ON firings (schedule);
   CREATE TRIGGER firings_removed AFTER DELETE ON jobs BEGIN DELETE FROM firings WHERE job = old.id; END;`;
