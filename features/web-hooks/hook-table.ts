/** A caller's subscriptions by web hook, and the outstanding messages of each, in the SQL storage of its object. */
import type { EventReader, PartTables } from "../../core/jobs/index.ts";
import type { ObjectSql, SqlValue } from "../../core/resonate/index.ts";

/** A subscription. Times are in milliseconds since the epoch. */
export interface Subscription {
  id: string;
  name: string;
  url: string;
  /** The filter for jobs (`EventFilter`), as JSON. */
  filter: string;
  secret: string;
  /** The previous secret, which also signs until `old_until`. */
  old_secret: string | null;
  old_until: number;
  expires_at: number;
  /** The caller for whom links to jobs are made, as JSON. */
  caller: string;
  /** The log's cursor up to which events have become deliveries. */
  position: string;
  active: number;
  last_delivery_at: number | null;
  last_error: string | null;
  failed_since: number | null;
  failures: number;
  /** Why it has ended, as JSON; null while it continues. */
  ended: string | null;
}

/** An outstanding message: an event at a position of the log, or a notice about the subscription itself. */
export interface Delivery {
  subscription: string;
  /** 0 for a message that is not an event. */
  position: number;
  type: "event" | "gap" | "terminated";
  message_id: string;
  attempts: number;
  next_at: number;
}

/** How many verified addresses are kept: a caller may name others for ever. */
const MAX_VERIFIED_ADDRESSES = 200;

/** The due time of a message that its receiver has refused for good, in milliseconds since the epoch. */
export const NEVER = 8_640_000_000_000_000;

const HOOK_TABLES = `CREATE TABLE subscriptions (
     id TEXT PRIMARY KEY, name TEXT NOT NULL, url TEXT NOT NULL, filter TEXT NOT NULL, secret TEXT NOT NULL, old_secret TEXT,
     old_until REAL NOT NULL, expires_at REAL NOT NULL, caller TEXT NOT NULL, position TEXT NOT NULL, active INTEGER NOT NULL,
     last_delivery_at REAL, last_error TEXT, failed_since REAL, failures INTEGER NOT NULL, ended TEXT
   ) STRICT;
   CREATE TABLE deliveries (
     subscription TEXT NOT NULL, position INTEGER NOT NULL, type TEXT NOT NULL, message_id TEXT NOT NULL,
     attempts INTEGER NOT NULL, next_at REAL NOT NULL, PRIMARY KEY (subscription, type, position)
   ) STRICT;
   CREATE TABLE verified (url TEXT PRIMARY KEY, until REAL NOT NULL) STRICT;`;

/**
 * The tables of subscriptions. A restored subscription continues after the events that it received, and reports that some may be
 * missing.
 */
export const hookTables = (sql: ObjectSql, log: Pick<EventReader, "cursorAt">): PartTables => ({
  version: 1,
  statements: [HOOK_TABLES],
  copied: ["verified", "deliveries", "subscriptions"],
  restore: {
    subscriptions(row, now) {
      const subscription = row as unknown as Subscription;
      const { id, position, ended } = subscription;
      const table = new HookTable(sql);
      // The log has another epoch after a restore.
      const [, number] = position.split(".");
      table.put(ended === null ? { ...subscription, position: log.cursorAt(Number(number)) } : subscription);
      const message_id = `msg_gap_${crypto.randomUUID()}`;
      const isKnown = sql.all("SELECT 1 FROM deliveries WHERE subscription = ? AND type = 'gap'", id).length > 0;
      if (ended === null && !isKnown)
        table.add({ subscription: id, position: 0, type: "gap", message_id, attempts: 0, next_at: now });
    },
  },
});

const MESSAGE = "subscription = ? AND type = ? AND position = ? AND message_id = ?";

const keyOf = ({ subscription, type, position, message_id }: Delivery): SqlValue[] => [
  subscription,
  type,
  position,
  message_id,
];

export class HookTable {
  readonly #sql: ObjectSql;

  constructor(sql: ObjectSql) {
    this.#sql = sql;
  }

  get(id: string): Subscription | undefined {
    return this.#sql.all("SELECT * FROM subscriptions WHERE id = ?", id)[0] as unknown as Subscription | undefined;
  }

  subscriptions(): Subscription[] {
    return this.#sql.all("SELECT * FROM subscriptions") as unknown as Subscription[];
  }

  put(subscription: Subscription): void {
    const columns = Object.keys(subscription);
    const marks = columns.map(() => "?").join(", ");
    this.#sql.all(
      `INSERT OR REPLACE INTO subscriptions (${columns.join(", ")}) VALUES (${marks})`,
      ...(Object.values(subscription) as SqlValue[]),
    );
  }

  change(id: string, change: Partial<Subscription>): void {
    const columns = Object.keys(change).map((column) => `${column} = ?`);
    const values = Object.values(change) as SqlValue[];
    this.#sql.all(`UPDATE subscriptions SET ${columns.join(", ")} WHERE id = ?`, ...values, id);
  }

  remove(id: string): void {
    this.#sql.all("DELETE FROM subscriptions WHERE id = ?", id);
    this.#sql.all("DELETE FROM deliveries WHERE subscription = ?", id);
  }

  /** A new gap replaces an outstanding one, as an attempt that is under way does not report the later loss. */
  add(delivery: Delivery): void {
    const { subscription, position, type, message_id, attempts, next_at } = delivery;
    const values = [subscription, position, type, message_id, attempts, next_at];
    this.#sql.all(
      `INSERT INTO deliveries VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE
       SET message_id = excluded.message_id, next_at = min(next_at, excluded.next_at) WHERE type = 'gap'`,
      ...values,
    );
  }

  schedule(delivery: Delivery, attempts: number, next_at: number): void {
    this.#sql.all(
      `UPDATE deliveries SET attempts = ?, next_at = ? WHERE ${MESSAGE}`,
      attempts,
      next_at,
      ...keyOf(delivery),
    );
  }

  done(delivery: Delivery): void {
    this.#sql.all(`DELETE FROM deliveries WHERE ${MESSAGE}`, ...keyOf(delivery));
  }

  /** Whether a gap is outstanding. Removes a gap that the receiver has refused, as this answer reports it to the client. */
  takeGap(id: string): boolean {
    const isThere = this.#sql.all("SELECT 1 FROM deliveries WHERE subscription = ? AND type = 'gap'", id).length > 0;
    this.#sql.all("DELETE FROM deliveries WHERE subscription = ? AND type = 'gap' AND next_at = ?", id, NEVER);
    return isThere;
  }

  /**
   * The due messages, the earliest first: up to `limit` of each subscription that is not suspended. `turn` is a message's place
   * among those of its subscription.
   */
  due(now: number, limit: number): (Delivery & { turn: number })[] {
    return this.#sql.all(
      `SELECT * FROM (
         SELECT *, row_number() OVER (PARTITION BY subscription ORDER BY next_at, position) AS turn FROM deliveries
         WHERE next_at <= ? AND subscription IN (SELECT id FROM subscriptions WHERE active = 1)
       ) WHERE turn <= ? ORDER BY next_at, position`,
      ...[now, limit],
    ) as unknown as (Delivery & { turn: number })[];
  }

  /** Delays all due messages. */
  postpone(now: number, next_at: number): void {
    this.#sql.all("UPDATE deliveries SET next_at = ? WHERE next_at <= ?", next_at, now);
  }

  /** When the next delivery is due; infinite without one. */
  nextAt(): number {
    const [row] = this.#sql.all(
      "SELECT min(next_at) AS at FROM deliveries JOIN subscriptions ON id = subscription WHERE active = 1",
    );
    return Number(row?.at ?? Infinity);
  }

  outstanding(id: string): number {
    return Number(this.#sql.all("SELECT count(*) AS n FROM deliveries WHERE subscription = ?", id)[0]?.n);
  }

  /** The position of a subscription's first outstanding event; `except` is left out. */
  firstOpen(id: string, except: number): number | undefined {
    const where = "subscription = ? AND type = 'event' AND position <> ?";
    const [row] = this.#sql.all(`SELECT min(position) AS first FROM deliveries WHERE ${where}`, id, except);
    return row?.first == null ? undefined : Number(row.first);
  }

  isVerified(url: string, now: number): boolean {
    return this.#sql.all("SELECT 1 FROM verified WHERE url = ? AND until > ?", url, now).length > 0;
  }

  verify(url: string, until: number): void {
    this.#sql.all("INSERT OR REPLACE INTO verified VALUES (?, ?)", url, until);
    const newest = "SELECT url FROM verified ORDER BY until DESC LIMIT ?";
    this.#sql.all(`DELETE FROM verified WHERE url NOT IN (${newest})`, MAX_VERIFIED_ADDRESSES);
  }
}
