/** Counts and removes the promises of one caller on the embedded server. */
import { keysOf } from "../../core/author/caller.ts";
import { idsFrom, startRecordEnd } from "../../core/resonate/ids.ts";
import type { Sql } from "../engine/sql.ts";
import { JOB_TABLES } from "../engine/store.ts";

/** `caller`: the name of a static token, or the name that the log gives the caller of an OAuth token. */
export interface Owner {
  caller: string;
  namespace: string;
}

/**
 * Removes up to `limit` of a caller's promises, with their tasks, listeners and callbacks: first the promises whose ids begin
 * with the caller's key, then the records of the shared jobs that it started. Returns their number; 0 when none is left.
 */
export async function forgetSome(sql: Sql, { caller, namespace }: Owner, limit: number): Promise<number> {
  const keys = await keysOf(caller);
  return sql.transaction(() => {
    for (const key of keys) {
      const own = sql.all(`SELECT id FROM promises WHERE ${OWN} LIMIT ${limit}`, ...ownOf(key, namespace));
      const found =
        own.length > 0
          ? own
          : sql.all(`SELECT id FROM promises WHERE ${SHARED} LIMIT ${limit}`, ...sharedOf(key, namespace));
      if (found.length === 0) continue;
      const ids = JSON.stringify(found.map(({ id }) => id));
      // By `awaiter` as well: a shared job that one of these jobs awaits stays, without its callback.
      for (const [table, column] of [["callbacks", "awaiter"], ...JOB_TABLES])
        sql.run(`DELETE FROM ${table} WHERE ${column} IN (SELECT value FROM json_each(?))`, ids);
      return found.length;
    }
    return 0;
  });
}

export async function countOf(sql: Sql, { caller, namespace }: Owner): Promise<number> {
  const count = (where: string, values: string[]) =>
    Number(sql.all(`SELECT count(*) AS count FROM promises WHERE ${where}`, ...values)[0]?.count);
  const counts = (await keysOf(caller)).map(
    (key) => count(OWN, ownOf(key, namespace)) + count(SHARED, sharedOf(key, namespace)),
  );
  return counts.reduce((sum, each) => sum + each, 0);
}

const OWN = "id >= ?1 AND id < ?2";
const ownOf = (key: string, namespace: string) => idsFrom(namespace + key);
const SHARED = "substr(id, 1, length(?1)) = ?1 AND substr(id, -length(?2)) = ?2";
const sharedOf = (key: string, namespace: string) => [namespace, startRecordEnd(key)];
