import type { PartTables } from "../../core/jobs/index.ts";
import { ObjectSql, type ObjectStorage, openSchemas } from "../../core/resonate/index.ts";
import { createStorage } from "./object-storage.ts";

/** The SQL of a storage with the tables of parts. */
export function openTables(tables: readonly PartTables[], storage: ObjectStorage = createStorage()): ObjectSql {
  const sql = new ObjectSql(storage);
  const schemas = tables.map(({ version, statements }, n) => ({ name: `part ${n}`, version, tables: statements }));
  openSchemas(sql, schemas);
  return sql;
}
