/** One connection to a wrapped server, which is opened again after it was lost. */
import { setTimeout as delay } from "node:timers/promises";
import { RetryableError } from "../../../core/author/index.ts";
import { AnswerLost } from "../host/errors.ts";
import type { Connection } from "./connection.ts";

/** The pauses between attempts, in milliseconds. They grow with each failure. */
const MIN_PAUSE_MS = 500;
const MAX_PAUSE_MS = 30_000;
/** A connection that ends sooner counts as failed. */
const MIN_LIFE_MS = 5_000;
/** How often to check whether a retired connection is idle, in milliseconds. */
const IDLE_CHECK_INTERVAL_MS = 5_000;

export class ReconnectingConnection {
  #connection: Promise<Connection> | undefined;
  #openedAt = 0;
  #failures = 0;
  #notBefore = 0;
  readonly #open: () => Promise<Connection>;

  constructor(open: () => Promise<Connection>) {
    this.#open = open;
  }

  async get(): Promise<Connection> {
    const before = this.#connection;
    const current = await before?.catch(() => undefined);
    if (current?.isOpen) return current;
    // Another call may be opening the connection. A second instance of a program would get calls that the first one already has.
    if (this.#connection !== before) return this.get();
    const wait = this.#notBefore - Date.now();
    if (wait > 0) throw new RetryableError(`it is tried again in ${Math.ceil(wait / 1_000)} s`, { retryAfter: wait });
    const opening = this.#open();
    this.#connection = opening;
    this.#openedAt = Date.now();
    try {
      const connection = await opening;
      void connection.end.then(() => {
        if (this.#connection === opening) this.#recordEnd();
      });
      return connection;
    } catch (error) {
      this.#connection = undefined;
      this.#recordEnd(true);
      throw error;
    }
  }

  /** Gives up a connection whose session the server has forgotten. Its other calls continue: each has a stream of its own. */
  async drop(connection: Connection): Promise<void> {
    if ((await this.#connection?.catch(() => undefined)) !== connection) return;
    this.#connection = undefined;
    this.#recordEnd();
    // In the 2026-07-28 revision each subscription has a stream, too.
    if (connection.era === "legacy") connection.updates.close(new AnswerLost("the server has forgotten the session"));
    void untilIdle(connection).then(() => connection.close().catch(() => {}));
  }

  /** Leaves a hosted program to the next worker; resolves with whether the program continues. */
  async leave(): Promise<boolean> {
    return (await this.#connection?.catch(() => undefined))?.leave() === true;
  }

  async close(): Promise<void> {
    const current = await this.#connection?.catch(() => undefined);
    await current?.close().catch(() => {});
  }

  /** Closes the connection once its calls have finished and their answers are recorded, and `isUsed` says that its host may end. */
  async retire(isUsed: (host: string | undefined) => boolean): Promise<void> {
    await untilIdle(await this.#connection?.catch(() => undefined), isUsed);
    await this.close();
  }

  #recordEnd(hasFailed = Date.now() - this.#openedAt < MIN_LIFE_MS): void {
    this.#failures = hasFailed ? this.#failures + 1 : 0;
    if (hasFailed) this.#notBefore = Date.now() + Math.min(MIN_PAUSE_MS * 2 ** (this.#failures - 1), MAX_PAUSE_MS);
  }
}

/** Resolves when no call uses the connection any more. */
async function untilIdle(
  connection: Connection | undefined,
  isUsed = (_host: string | undefined) => false,
): Promise<void> {
  do await delay(IDLE_CHECK_INTERVAL_MS, undefined, { ref: false });
  while (connection?.isOpen && !(connection.isIdle && !isUsed(connection.host)));
}
