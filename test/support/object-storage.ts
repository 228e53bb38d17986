/** The SQL storage of a Durable Object, in memory. */
import { DatabaseSync } from "node:sqlite";
import type { ObjectStorage } from "../../core/resonate/index.ts";
import { NodeSql } from "../../server/node/node-sql.ts";

export function createStorage(): ObjectStorage {
  const db = new DatabaseSync(":memory:");
  const sql = new NodeSql(db);
  return {
    sql: {
      exec(statement, ...values) {
        if (values.length > 0 || !statement.includes(";")) return { toArray: () => sql.all(statement, ...values) };
        db.exec(statement);
        return { toArray: () => [] };
      },
    },
    transactionSync: (work) => (db.isTransaction ? sql.attempt(work) : sql.transaction(work)),
    getAlarm: async () => null,
    setAlarm: async () => {},
  };
}
