/** What is a caller's, among all that a Resonate server keeps, and its removal from the embedded one. */
import { callerOf } from "../../core/definitions/caller.ts";
import { callerKey, idsFrom, isCallerHash, startRecordEnd } from "../../core/store/ids.ts";
import type { Sql } from "../engine/sql.ts";
import { PARTS } from "../engine/store.ts";

/** Whose data: the name of a static token, or what the log calls the caller of an OAuth token. */
export interface Owner {
  caller: string;
  /** The deployment's. */
  namespace: string;
}

/** The log names an OAuth caller by the hash that its key is made of; the name of a token may look like one. */
export async function keysOf(caller: string): Promise<string[]> {
  return [(await callerOf(caller)).key, ...(isCallerHash(caller) ? [callerKey(caller)] : [])];
}

/** How the ids end of what tells that the caller with this key has started a job which callers share. */
export const sharedBy = startRecordEnd;

/**
 * Removes some of what is a caller's, with all that belongs to it: what begins with its key, and the records of what it started
 * that is shared. Returns how many promises; 0 when nothing is left.
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
      // What it waited for stays, where callers share it, and must not look for it when it ends.
      for (const [table, column] of [["callbacks", "awaiter"], ...PARTS])
        sql.run(`DELETE FROM ${table} WHERE ${column} IN (SELECT value FROM json_each(?))`, ids);
      return found.length;
    }
    return 0;
  });
}

/** How many promises are a caller's. */
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
const sharedOf = (key: string, namespace: string) => [namespace, sharedBy(key)];
