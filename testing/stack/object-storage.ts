/** The SQL storage of a Durable Object, in memory. */
import { DatabaseSync } from "node:sqlite";
import type { ObjectStorage } from "../../core/store/object-storage.ts";
import { NodeSql } from "../../server/node/node-sql.ts";

export function createStorage(): ObjectStorage {
  const db = new DatabaseSync(":memory:");
  const sql = new NodeSql(db);
  let depth = 0;
  return {
    sql: {
      exec(statement, ...values) {
        if (values.length > 0 || !statement.includes(";")) return { toArray: () => sql.all(statement, ...values) };
        db.exec(statement);
        return { toArray: () => [] };
      },
    },
    transactionSync(work) {
      depth += 1;
      db.exec(`SAVEPOINT s${depth}`);
      try {
        const done = work();
        db.exec(`RELEASE s${depth}`);
        return done;
      } catch (error) {
        db.exec(`ROLLBACK TO s${depth}; RELEASE s${depth}`);
        throw error;
      } finally {
        depth -= 1;
      }
    },
    getAlarm: async () => null,
    setAlarm: async () => {},
  };
}
