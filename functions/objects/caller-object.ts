/** An object of a deployment: opens the parts of its role, answers calls of their methods, and does what is due at its alarm. */
import type { ObjectPart, PartHost } from "../../core/jobs/index.ts";
import {
  type Answer,
  answered,
  type ObjectCalls,
  type ObjectSchema,
  ObjectSql,
  type ObjectStorage,
  openSchemas,
  splitRole,
} from "../../core/resonate/index.ts";

/** The state that the platform gives an object. */
export interface ObjectState {
  storage: ObjectStorage;
}

/** What the composition of a role's parts gets. */
export interface RoleHost extends PartHost {
  /** When the alarm of an earlier instance is due, in milliseconds since the epoch; null without an alarm. */
  alarmAt(): Promise<number | null>;
}

/** Makes the parts of a role, the first whose tables others need. */
export type OpenRole = (host: RoleHost) => readonly ObjectPart[] | Promise<readonly ObjectPart[]>;

/** An instance of the class that is bound as `CALLER`. Its first call says which role it has. */
export class CallerObject implements ObjectCalls {
  readonly #storage: ObjectStorage;
  readonly #sql: ObjectSql;
  readonly #roles: Readonly<Record<string, OpenRole>>;
  #opening: Promise<void> | undefined;
  #role: string | undefined;
  #parts: readonly ObjectPart[] = [];
  #arming: Promise<void> | undefined;

  constructor({ storage }: ObjectState, roles: Readonly<Record<string, OpenRole>>) {
    this.#storage = storage;
    this.#sql = new ObjectSql(storage);
    this.#roles = roles;
  }

  /** Calls a method of a part. @throws {TypeError} if no part of the role has it */
  async call(method: string, args: readonly unknown[]): Promise<Answer<unknown>> {
    const [role, name] = splitRole(method);
    await this.#open(role);
    const part = this.#parts.find(({ methods = {} }) => Object.hasOwn(methods, name));
    if (role !== this.#role || !part?.methods) throw new TypeError(`The object has no method ${method}.`);
    const methods = part.methods;
    return answered(() => methods[name]?.(...args));
  }

  async alarm(): Promise<void> {
    const role = this.#role ?? this.#storedRole();
    if (role === undefined) return;
    await this.#open(role);
    const now = Date.now();
    // The first part may find that the object has nothing more to do.
    const [first, ...others] = this.#parts;
    await first?.run?.(now);
    await Promise.all(others.map((part) => part.run?.(now)));
    await this.#arm();
  }

  #open(role: string): Promise<void> {
    this.#opening ??= this.#openParts(role).catch((error) => {
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  async #openParts(role: string): Promise<void> {
    const open = Object.hasOwn(this.#roles, role) ? this.#roles[role] : undefined;
    if (!open) throw new TypeError(`No object has the role ${role}.`);
    const parts = await open(this.#host());
    openSchemas(this.#sql, schemasOf(role, parts));
    this.#role = role;
    this.#parts = parts;
    for (const part of parts) part.load?.();
  }

  #host(): RoleHost {
    const parts = () => this.#parts;
    const arming = () => this.#arming;
    return {
      alarmAt: () => this.#storage.getAlarm(),
      sql: this.#sql,
      get parts() {
        return parts();
      },
      arm: () => this.#armSoon(),
      get armed() {
        return arming();
      },
      clear: () => this.#clear(),
    };
  }

  /** The role of an earlier instance, by the names of its tables' schemas. */
  #storedRole(): string | undefined {
    const tables = "SELECT 1 FROM sqlite_master WHERE name = 'schemas'";
    if (this.#sql.all(tables).length === 0) return undefined;
    const [row] = this.#sql.all("SELECT name FROM schemas LIMIT 1");
    return row && splitRole(String(row.name))[0];
  }

  /** Sets the alarm once for all changes that are made at the same time, also within a transaction. */
  #armSoon(): Promise<void> {
    this.#arming ??= Promise.resolve().then(() => {
      this.#arming = undefined;
      return this.#arm();
    });
    return this.#arming;
  }

  async #arm(): Promise<void> {
    const at = Math.min(...this.#parts.map((part) => part.nextAt?.() ?? Number.POSITIVE_INFINITY));
    if (at < Number.POSITIVE_INFINITY) await this.#storage.setAlarm(Math.max(at, Date.now()));
  }

  #clear(): void {
    this.#sql.transaction(() => {
      for (const { tables } of this.#parts) {
        if (tables?.clear) tables.clear();
        else for (const table of tables?.copied ?? []) this.#sql.all(`DELETE FROM ${table}`);
      }
    });
    for (const part of this.#parts) part.load?.();
  }
}

/** The schemas of parts, by names that hold the role. */
export const schemasOf = (role: string, parts: readonly ObjectPart[]): ObjectSchema[] =>
  parts.flatMap(({ name, tables }) =>
    tables ? [{ name: `${role}.${name}`, version: tables.version, tables: tables.statements }] : [],
  );
