/**
 * Takes over a caller's earlier jobs from the Resonate server into a new object: jobs that an edge of commit 1c007cb has listed
 * and counted in chains of promises, or those of an object whose storage was lost. Every step is bounded.
 */
import * as z from "zod";
import { startedJob } from "../../core/jobs/caller-record.ts";
import { searchPage } from "../../core/jobs/own-jobs.ts";
import { childOf, decodeValue, ENTRY, getOf } from "../../core/resonate/codec.ts";
import type { ResonateClient } from "../../core/resonate/connection/client.ts";
import { SearchRefused } from "../../core/resonate/connection/failures.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import { listId, quotaId, rootOf } from "../../core/resonate/ids.ts";
import { last } from "../../core/resonate/sequence.ts";
import type { JobTable } from "./job-table.ts";

/** How long edges of 1c007cb may run beside a new object, in milliseconds. */
const UPGRADE = 86_400_000;

/** The number of chains into which 1c007cb divides a caller's list. */
const CHAINS = 4;

/** How many entries of a chain one step reads. */
const ENTRIES = 20;

/** How often a failing search is tried. */
const TRIES = 3;

/** More than any quota: once it is taken, an edge of 1c007cb admits no job in the period. */
const ALL = 2 ** 50;

/** The tag of the promise that says which object began a caller's record. */
const OBJECT = "durable-mcp:object";

const Entry = z.object({ startedAt: z.number() });
const Link = z.object({ sum: z.number().default(0), isSeal: z.boolean().default(false), by: z.unknown() });

interface State {
  /** For each chain: the entry to read next, downwards; the one to stop at; the last. Null: its end is not known yet. */
  chains: ({ next: number; low: number; end: number } | null)[];
  search: { cursor?: string | undefined; limit?: number | undefined; tries: number } | null;
}

export class Takeover {
  readonly #jobs: JobTable;
  readonly #client: ResonateClient;
  readonly #namespace: string;
  readonly #sealing = new Map<string, Promise<void>>();

  constructor(jobs: JobTable, client: ResonateClient, namespace: string) {
    this.#jobs = jobs;
    this.#client = client;
    this.#namespace = namespace;
  }

  /** The caller's key; undefined for an object that has not begun. */
  get key(): string | undefined {
    return this.#jobs.get("key");
  }

  /** Whether edges of 1c007cb may still start jobs of this caller. */
  get isUpgrade(): boolean {
    return Date.now() < Number(this.#jobs.get("born") ?? 0) + UPGRADE;
  }

  /** Whether the takeover has further steps. */
  get isPending(): boolean {
    const { chains, search } = this.#state;
    return search !== null || chains.some((chain) => chain === null || chain.next > chain.low);
  }

  /** Begins the record of a caller. Where its marker promise exists already, earlier jobs must be taken over. */
  async begin(key: string): Promise<void> {
    if (this.key !== undefined) return;
    const by = crypto.randomUUID();
    const id = listId(this.#namespace + key, "begin");
    // `true` makes an edge of 1c007cb, after a rollback, search instead of reading the list.
    const begin = childOf(id, Date.now() - 1, { param: true, tags: { [OBJECT]: by } });
    // Callers without identity have no list and no quota: a search finds their jobs.
    const isNew = key === "" || (await this.#client.call(begin))?.tags[OBJECT] === by;
    const whole = { next: 0, low: 0, end: 0 };
    const chains = Array.from({ length: CHAINS }, () => (isNew ? whole : null));
    this.#jobs.transaction(() => {
      this.#state = { chains, search: isNew ? null : { tries: 0 } };
      this.#jobs.set("key", key);
      this.#jobs.set("born", String(Date.now()));
    });
  }

  /** Whether the promise that began the record is gone, as all promises of a forgotten caller are. */
  async isMarkerGone(): Promise<boolean> {
    return this.key !== "" && (await this.#get(listId(this.#owner, "begin"))) === undefined;
  }

  /** Takes over a bounded number of jobs. */
  async step(): Promise<void> {
    const { chains, search } = this.#state;
    const at = chains.findIndex((chain) => chain === null || chain.next > chain.low);
    const chain = chains[at];
    if (chain) return this.#read(at, chain);
    if (at >= 0) return this.#setChain(at, await this.#endOf(at, 0), 0);
    if (search) await this.#search(search);
  }

  /** Looks for new entries of edges of 1c007cb in the caller's list. */
  async lookAgain(): Promise<void> {
    await Promise.all(
      this.#state.chains.map(async (chain, at) => {
        if (!chain) return;
        const end = await this.#endOf(at, chain.end);
        if (end > chain.end) this.#setChain(at, end, chain.end);
      }),
    );
  }

  /**
   * Ends the chain in which edges of 1c007cb count the jobs of a period, and takes over their count. From then on they admit no
   * more jobs, and the object admits as many as are left.
   */
  async seal(period: string): Promise<void> {
    if (!this.isUpgrade || this.#jobs.isSealed(period)) return;
    const sealing = this.#sealing.get(period) ?? this.#seal(period).finally(() => this.#sealing.delete(period));
    this.#sealing.set(period, sealing);
    await sealing;
  }

  async #seal(period: string): Promise<void> {
    const base = quotaId(this.#owner, period);
    const by = crypto.randomUUID();
    const lastOf = (chain: string) => last(async (n) => linkIn(await this.#get(`${base}.${chain}${n}`)));
    let taken = 0;
    for (let n = 1; ; n++) {
      const id = `${base}.t${n}`;
      const param = { by, sum: ALL, isSeal: true };
      let link = linkIn(await this.#client.call(childOf(id, Date.now(), { param })));
      if (link?.by === by) break;
      if (n === 1) {
        ({ n, entry: link } = await lastOf("t"));
      }
      // If an earlier object of the caller has sealed the period, its count is found with the jobs.
      taken = link?.isSeal ? 0 : (link?.sum ?? 0);
      if (link?.isSeal) break;
    }
    if (taken > 0) taken -= (await lastOf("g")).entry?.sum ?? 0;
    this.#jobs.seal(period, taken, Date.now());
  }

  async #read(at: number, { next, low, end }: { next: number; low: number; end: number }): Promise<void> {
    const numbers = Array.from({ length: Math.min(ENTRIES, next - low) }, (_, i) => next - i);
    await Promise.all(
      numbers.map(async (n) => {
        const entry = await this.#get(listId(this.#owner, `${at}.${n}`));
        const id = entry?.tags[ENTRY];
        if (id) await this.#take(id, Entry.safeParse(decodeValue(entry.param)).data?.startedAt);
      }),
    );
    this.#setChain(at, end, low, next - numbers.length);
  }

  /** Takes over a page of the promises with the caller's tags, where the server allows searches. */
  async #search({ cursor, limit, tries }: NonNullable<State["search"]>): Promise<void> {
    try {
      const page = await searchPage(this.#client, this.#owner, { cursor, ...(limit !== undefined && { limit }) });
      for (const record of page.promises) {
        // The record that the caller started a shared job is a child of the job's promise.
        if (rootOf(record.id) === record.id) this.#jobs.note(startedJob(record, this.key ?? ""), Date.now());
        else await this.#take(rootOf(record.id), record.createdAt);
      }
      const next = page.cursor === undefined ? null : { cursor: page.cursor, limit: page.limit, tries: 0 };
      this.#state = { ...this.#state, search: next };
    } catch (error) {
      const isLast = error instanceof SearchRefused || tries + 1 >= TRIES;
      this.#state = { ...this.#state, search: isLast ? null : { cursor, limit, tries: tries + 1 } };
      if (!isLast) throw error;
    }
  }

  async #take(id: string, startedAt: number | undefined): Promise<void> {
    const record = await this.#get(id);
    if (record) this.#jobs.note(startedJob(record, this.key ?? "", startedAt), Date.now());
  }

  async #endOf(chain: number, after: number): Promise<number> {
    return (await last((n) => this.#get(listId(this.#owner, `${chain}.${n}`)), { after })).n;
  }

  #get(id: string): Promise<PromiseRecord | undefined> {
    return this.#client.call(getOf(id));
  }

  get #owner(): string {
    return this.#namespace + (this.key ?? "");
  }

  #setChain(at: number, end: number, low: number, next = end): void {
    const { chains, search } = this.#state;
    this.#state = { chains: chains.with(at, { next, low, end }), search };
  }

  get #state(): State {
    return JSON.parse(this.#jobs.get("takeover") ?? '{"chains":[],"search":null}');
  }

  set #state(state: State) {
    this.#jobs.set("takeover", JSON.stringify(state));
  }
}

function linkIn(record: PromiseRecord | undefined): z.infer<typeof Link> | undefined {
  return record && Link.safeParse(decodeValue(record.param)).data;
}
