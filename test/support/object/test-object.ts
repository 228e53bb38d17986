/** The Resonate server of an account in this process, over a storage that is durable or refuses writes as a test says. */
import { DatabaseSync } from "node:sqlite";
import { vi } from "vitest";
import { newToken } from "../../../cli/static-token.ts";
import type { SqlValue } from "../../../server/engine/sql.ts";
import { NodeSql } from "../../../server/node/node-sql.ts";
import { ObjectServer } from "../../../server/object/object-server.ts";
import type { ObjectState } from "../../../server/object/platform.ts";
import { until } from "../../../testing/stack/program.ts";

export const HEAD = { corrId: "1", version: "2026-04-01" };

/** The platform's storage over Node's SQLite. */
class FakeState implements ObjectState {
  readonly #db = new DatabaseSync(":memory:");
  readonly #sql = new NodeSql(this.#db);
  alarm: number | null = null;
  isFull = false;
  /** The number of statements that have written. */
  writes = 0;
  /** The promise that `sync` returns. */
  durable: Promise<void> = Promise.resolve();

  /** The bookmark to restore at the next start, and whether the object was aborted for it. */
  next: string | undefined;
  isAborted = false;

  readonly storage = {
    sql: {
      databaseSize: 4_096,
      exec: (statement: string, ...values: SqlValue[]) => {
        if (this.isFull && /^\s*(INSERT|UPDATE|DELETE)/.test(statement)) throw new Error("the storage is full");
        if (/^\s*(INSERT|UPDATE|DELETE)/.test(statement)) this.writes += 1;
        const rows = this.#sql.all(statement, ...values);
        return { toArray: () => rows, rowsRead: rows.length, rowsWritten: 0 };
      },
    },
    transactionSync: <T>(work: () => T): T =>
      this.#db.isTransaction ? this.#sql.attempt(work) : this.#sql.transaction(work),
    sync: () => this.durable,
    getAlarm: async () => this.alarm,
    setAlarm: async (time: number) => {
      this.alarm = time;
    },
    getCurrentBookmark: async () => "now",
    getBookmarkForTime: async (time: Date) => `at ${time.toISOString()}`,
    onNextSessionRestoreBookmark: async (bookmark: string) => {
      this.next = bookmark;
      return "undo";
    },
  };

  abort(): void {
    this.isAborted = true;
  }

  blockConcurrencyWhile<T>(work: () => Promise<T>): Promise<T> {
    return work();
  }
}

type Env = ConstructorParameters<typeof ObjectServer>[1];

export class TestObject {
  readonly state = new FakeState();
  /** The instance that runs. */
  server: ObjectServer;
  readonly #operatorToken: string;
  readonly #env: Env;

  /** Begins with an operator of its own. */
  constructor(env: Env = {}) {
    const { token, sha256 } = newToken();
    this.#operatorToken = token;
    this.#env = { OPERATOR_TOKENS: JSON.stringify([{ name: "ada", sha256 }]), ...env };
    this.server = new ObjectServer(this.state, this.#env);
  }

  /** Starts another instance over the same storage, with other variables if `env` has some. */
  restart(env: Env = {}): void {
    this.server = new ObjectServer(this.state, { ...this.#env, ...env });
  }

  async call(kind: string, data: object): Promise<Response> {
    const body = JSON.stringify({ kind, head: HEAD, data });
    return this.server.fetch(new Request("http://resonate/", { method: "POST", body }));
  }

  /** Sends an operator's request; `token` is another token than the operator's. */
  async operate(method: string, path: string, { body, token }: { body?: string; token?: string } = {}) {
    const headers = { authorization: `Bearer ${token ?? this.#operatorToken}` };
    const init = { method, headers, ...(body !== undefined && { body }) };
    const response = await this.server.fetch(new Request(`http://resonate/public/operate/${path}`, init));
    const text = await response.text();
    return { status: response.status, data: text.startsWith("{") ? JSON.parse(text) : text };
  }

  /** Connects a reader of a group, whose stream's text so far is `text`. */
  async listen(group: string): Promise<{ text: string; leave(): void }> {
    const leaving = new AbortController();
    const response = await this.server.fetch(
      new Request(`http://resonate/poll/${group}/1`, { signal: leaving.signal }),
    );
    const stream = { text: "", leave: () => leaving.abort() };
    void (async () => {
      for await (const chunk of response.body ?? []) stream.text += new TextDecoder().decode(chunk);
    })();
    await until("the first byte", () => stream.text !== "");
    return stream;
  }

  /** Lets `ms` milliseconds of a faked `Date` pass, and handles each alarm at its time. */
  async pass(ms: number): Promise<void> {
    const end = Date.now() + ms;
    while (this.state.alarm !== null && this.state.alarm <= end) {
      vi.setSystemTime(this.state.alarm);
      this.state.alarm = null;
      await this.server.alarm();
      await turns(5); // The alarm may have woken a runner.
    }
    vi.setSystemTime(end);
  }
}

/** Lets other work of this process continue for `count` turns of its event loop. */
export async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setTimeout(resolve));
}
