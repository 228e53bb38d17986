import type { DatabaseSync } from "node:sqlite";
import { type Row, type Sql, type SqlValue, TransactionRolledBack } from "../engine/sql.ts";

/** Node's SQLite as the store uses it. A commit is on disk when `transaction` returns. */
export class NodeSql implements Sql {
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, ReturnType<DatabaseSync["prepare"]>>();

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  all(statement: string, ...values: SqlValue[]): Row[] {
    return this.#prepare(statement).all(...values) as Row[];
  }

  run(statement: string, ...values: SqlValue[]): void {
    this.#prepare(statement).run(...values);
  }

  transaction<T>(work: () => T): T {
    this.run("BEGIN");
    try {
      const result = work();
      this.run("COMMIT");
      return result;
    } catch (error) {
      if (this.#db.isTransaction) this.run("ROLLBACK");
      throw error;
    }
  }

  attempt<T>(work: () => T): T {
    this.run("SAVEPOINT attempt");
    try {
      const result = work();
      this.run("RELEASE attempt");
      return result;
    } catch (error) {
      if (!this.#db.isTransaction) throw new TransactionRolledBack("the transaction was rolled back", { cause: error });
      this.run("ROLLBACK TO attempt");
      this.run("RELEASE attempt");
      throw error;
    }
  }

  close(): void {
    this.#db.close();
  }

  #prepare(text: string): ReturnType<DatabaseSync["prepare"]> {
    const statement = this.#statements.get(text) ?? this.#db.prepare(text);
    this.#statements.set(text, statement);
    return statement;
  }
}
