/** Counts and removes the promises of one caller on the embedded server. */
import { keysOf } from "../../core/author/index.ts";
import { idsFrom, startRecordEnd } from "../../core/resonate/index.ts";
import type { Sql } from "./sql.ts";
import { JOB_TABLES } from "./store.ts";

/** `caller`: the name of a static token, or the name that the log gives the caller of an OAuth token. */
export interface Owner {
  caller: string;
  namespace: string;
}

/**
 * Removes up to `limit` of a caller's promises, with their tasks, listeners and callbacks: first the promises whose ids begin
 * with the caller's key, then the records of the shared jobs that it started. Returns their number; 0 if none is left.
 */
export async function removePromisesOf(sql: Sql, { caller, namespace }: Owner, limit: number): Promise<number> {
  const keys = await keysOf(caller);
  return sql.transaction(() => {
    for (const key of keys) {
      const select = (condition: string, values: string[]) =>
        sql.all(`SELECT id FROM promises WHERE ${condition} LIMIT ${limit}`, ...values);
      const jobs = select(OWN_JOBS, ownJobs(key, namespace));
      const rows = jobs.length > 0 ? jobs : select(SHARED_JOB_RECORDS, sharedJobRecords(key, namespace));
      if (rows.length === 0) continue;
      const ids = JSON.stringify(rows.map(({ id }) => id));
      // By `awaiter` as well: a shared job that one of these jobs awaits stays, without its callback.
      for (const [table, column] of [["callbacks", "awaiter"], ...JOB_TABLES])
        sql.run(`DELETE FROM ${table} WHERE ${column} IN (SELECT value FROM json_each(?))`, ids);
      return rows.length;
    }
    return 0;
  });
}

export async function countPromisesOf(sql: Sql, { caller, namespace }: Owner): Promise<number> {
  const count = (condition: string, values: string[]) =>
    Number(sql.all(`SELECT count(*) AS count FROM promises WHERE ${condition}`, ...values)[0]?.count);
  const counts = (await keysOf(caller)).map(
    (key) => count(OWN_JOBS, ownJobs(key, namespace)) + count(SHARED_JOB_RECORDS, sharedJobRecords(key, namespace)),
  );
  return counts.reduce((sum, each) => sum + each, 0);
}

/** The conditions of promises whose ids begin with a caller's key, and of its records of shared jobs, with their values. */
const OWN_JOBS = "id >= ?1 AND id < ?2";
const ownJobs = (key: string, namespace: string) => idsFrom(namespace + key);
const SHARED_JOB_RECORDS = "substr(id, 1, length(?1)) = ?1 AND substr(id, -length(?2)) = ?2";
const sharedJobRecords = (key: string, namespace: string) => [namespace, startRecordEnd(key)];
