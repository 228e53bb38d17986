/**
 * Callers' places for jobs (`core/jobs/ledger.ts`), taken by one for all edges of a deployment: whoever starts something
 * asks a listener, which is the same for a caller always. So the next link of a ledger is known, two starts do not come
 * upon one another, and no edge keeps places of its own.
 *
 * A listener remembers how far the ledgers are in its storage, so that it knows that when it begins anew. Whatever it
 * remembers is checked by the link that is added: if it is forgotten, the end is looked for.
 */

import type { QuotaKeeper } from "../../core/jobs/endpoint.ts";
import { type Known, Ledgers } from "../../core/jobs/ledger.ts";
import { isOver, type Places, type Wanted } from "../../core/jobs/quota.ts";
import { ResonateClient } from "../../core/store/client.ts";
import type { StoreEndpoint } from "../../core/store/endpoint.ts";
import { ResonateRefused, ResonateUnavailable } from "../../core/store/failures.ts";
import { type ListenerNamespace, listenerOf } from "./feed.ts";

/** How long the Resonate server may take to answer, in milliseconds. */
const PATIENCE = 5_000;

/** The time between two writes of the same ledger's end, in milliseconds. */
const BETWEEN_WRITES = 1_000;

/** How often ledgers whose period is over are removed, in milliseconds. */
const SWEEP = 24 * 3_600_000;

/** What there is of a Durable Object's storage here. */
export interface ListenerStorage {
  get<T>(key: string): Promise<T | undefined>;
  put(key: string, value: unknown, options: { allowUnconfirmed: boolean }): Promise<void>;
  delete(key: string): Promise<boolean>;
  list(): Promise<Map<string, unknown>>;
  getAlarm(): Promise<number | null>;
  setAlarm(time: number): Promise<void>;
}

/** What a listener is asked: for places, or to take some back; `isUnneeded`: that nobody waits for. */
export type AskedPlaces = (Wanted & { unit?: never }) | (Places & { isUnneeded: boolean });

/** What it answers: a tag, `null` where there is no room, or why the Resonate server did not do it. */
export interface PlacesAnswer {
  done?: string | true | null;
  failed?: { reason: string; status: number | undefined; isRefused: boolean };
}

/** The edge's side: asks the caller's listener. What it cannot be asked is left to whoever wanted it. */
export function createKeeper(namespace: ListenerNamespace): QuotaKeeper {
  const ask = async (caller: string, asked: AskedPlaces) => {
    const answer = await listenerOf(namespace, caller)
      .places(asked)
      .catch((): PlacesAnswer => ({}));
    const { done, failed } = answer;
    if (failed) throw new (failed.isRefused ? ResonateRefused : ResonateUnavailable)(failed.reason, failed);
    return done;
  };
  return {
    take: (caller, wanted) => ask(caller, wanted) as Promise<string | null | undefined>,
    giveBack: (caller, places, isUnneeded) => ask(caller, { ...places, isUnneeded }) as Promise<true | undefined>,
  };
}

/** The listener's side. */
export class KeptPlaces {
  readonly #storage: ListenerStorage;
  readonly #client: ResonateClient;
  readonly #ledgers = new Ledgers();
  /** The ledgers whose end has just been written down. */
  readonly #written = new Set<string>();

  constructor(storage: ListenerStorage, place: StoreEndpoint) {
    this.#storage = storage;
    this.#client = new ResonateClient({ ...place, timeout: PATIENCE });
  }

  async answer(asked: AskedPlaces): Promise<PlacesAnswer> {
    const { base } = asked;
    try {
      if (!this.#ledgers.known(base)) {
        const known = await this.#storage.get<Known>(base);
        if (known) this.#ledgers.tell(base, known);
      }
      const before = this.#ledgers.known(base);
      const done = await this.#do(asked);
      if (this.#ledgers.known(base)?.taken.link !== before?.taken.link) this.#write(base);
      return { done };
    } catch (error) {
      if (!(error instanceof ResonateUnavailable)) throw error;
      const { message: reason, status } = error;
      return { failed: { reason, status, isRefused: error instanceof ResonateRefused } };
    }
  }

  /** Forgets the ledgers whose period is over. */
  async sweep(): Promise<void> {
    const over = [...(await this.#storage.list()).keys()].filter((base) => isOver(base, Date.now()));
    await Promise.all(over.map((base) => this.#storage.delete(base)));
  }

  async #do(asked: AskedPlaces): Promise<string | true | null> {
    if (asked.unit === undefined) return (await this.#ledgers.take(this.#client, asked)) ?? null;
    const given = this.#ledgers.giveBack(this.#client, asked);
    if (asked.isUnneeded) given.catch(() => {});
    else await given;
    return true;
  }

  /** Writes down how far a ledger is: a row, once in so much time. Nobody waits for it: what is lost is looked for. */
  #write(base: string): void {
    const known = this.#ledgers.known(base);
    if (!known || this.#written.has(base)) return;
    this.#written.add(base);
    setTimeout(() => {
      this.#written.delete(base);
      if (this.#ledgers.known(base)?.taken.link !== known.taken.link) this.#write(base);
    }, BETWEEN_WRITES);
    this.#store(base, known).catch(() => {});
  }

  async #store(base: string, known: Known): Promise<void> {
    await this.#storage.put(base, known, { allowUnconfirmed: true });
    if ((await this.#storage.getAlarm()) === null) await this.#storage.setAlarm(Date.now() + SWEEP);
  }
}
