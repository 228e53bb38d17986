/**
 * Which jobs a caller started, in the order in which it did: kept as promises of its own, so that neither the promises of
 * others have to be looked at, nor the results of its jobs, and no search is needed, which a token may not be allowed.
 *
 * An entry is a promise that has ended and holds a job's name. Entries are numbered from 1 without gaps, in a few chains,
 * so that starts at the same time seldom want the same number: to take one is atomic, and who comes second takes the next.
 */
import * as z from "zod";
import type { Job } from "../definitions/job.ts";
import type { ResonateClient } from "../store/client.ts";
import { childOf, decodeValue, ENTRY } from "../store/codec.ts";
import type { PromiseRecord } from "../store/protocol.ts";
import type { Names } from "./names.ts";

const CHAINS = 4;

/** How many numbers are asked for at once where it is not known how far a chain goes: each twice the one before. */
const AT_ONCE = 8;

/** How long it is taken for known how far a chain goes at least, in milliseconds: a server may have been emptied. */
const KNOWN = 10_000;

/** For how long what is known of chains is of any use, in milliseconds: what is older may have been removed. */
const OF_USE = 3_600_000;

/** Of how many chains that is remembered, and of how many jobs that they are listed. */
const REMEMBERED = 10_000;

/** How long a request may take to add to a chain before others of its isolate do so as well, in milliseconds. */
const TURN = 2_000;

/** How many entries of a chain are read at once. */
const WINDOW = 8;

const Stored = z.object({ name: z.string(), startedAt: z.number() });

/** A job that the caller started. */
export interface Listed {
  name: string;
  job: Job;
  /** When this caller first started it, in milliseconds since the epoch. */
  startedAt: number;
}

/** What an isolate remembers of lists: values, which its requests may share. */
export class ListMemory {
  readonly ends = new Map<string, { n: number; at: number }>();
  readonly jobs = new Map<string, number>();
  /** The callers who are known to have a list. */
  readonly owners = new Set<string>();
  /** Chains that a request is adding to, until when that is waited for, in milliseconds since the epoch. */
  readonly turns = new Map<string, number>();

  trim(): void {
    if (this.ends.size > REMEMBERED) this.ends.clear();
    if (this.jobs.size > REMEMBERED) this.jobs.clear();
    if (this.owners.size > REMEMBERED) this.owners.clear();
  }
}

/** How far in each chain one is: the number of the entry to read next, downwards. */
export type ChainPosition = readonly number[];

export class Listing {
  readonly #client: ResonateClient;
  readonly #names: Names;
  readonly #memory: ListMemory;

  constructor(client: ResonateClient, names: Names, memory: ListMemory) {
    this.#client = client;
    this.#names = names;
    this.#memory = memory;
  }

  /**
   * Adds a job, unless it is known that it was added. A job that is there twice is listed once on a page.
   *
   * @returns whether it may be the first of its caller: there may be jobs from before there were lists
   */
  async add(name: string, startedAt: number): Promise<boolean> {
    const chain = chainOf(name);
    const known = this.#id(chain, 0) + name;
    if (Date.now() < (this.#memory.jobs.get(known) ?? 0) + OF_USE) return false;
    const { turns } = this.#memory;
    const turn = this.#id(chain, 0);
    // Of many at once in one isolate each would want the numbers of all others.
    while (Date.now() < (turns.get(turn) ?? 0))
      await new Promise((resolve) => setTimeout(resolve, 2 + Math.random() * 8));
    const until = Date.now() + TURN;
    turns.set(turn, until);
    try {
      const n = await this.#append(chain, { name, startedAt });
      this.#memory.jobs.set(known, Date.now());
      const owner = this.#names.owner;
      const isFirst = n === 1 && !this.#memory.owners.has(owner);
      this.#memory.owners.add(owner);
      return isFirst;
    } finally {
      if (turns.get(turn) === until) turns.delete(turn);
    }
  }

  async #append(chain: number, entry: z.infer<typeof Stored>): Promise<number> {
    const tags = { [ENTRY]: this.#names.idOf(entry.name) ?? "" };
    for (let n = (await this.#end(chain)) + 1; ; n++) {
      const id = this.#id(chain, n);
      const record = await this.#client.call(childOf(id, id, Date.now() - 1, { param: entry, tags }));
      this.#remember(chain, n);
      // Whoever added it at the same time has added the same.
      if (entryIn(record)?.name === entry.name) return n;
    }
  }

  /** Where the list begins: its newest entries. */
  async newest(signal?: AbortSignal): Promise<ChainPosition> {
    return Promise.all(Array.from({ length: CHAINS }, (_, chain) => this.#end(chain, true, signal)));
  }

  /** The jobs from a position on, newest first, each with the position after it. */
  async *from(
    position: ChainPosition,
    signal?: AbortSignal,
  ): AsyncGenerator<{ listed: Listed | undefined; next: ChainPosition }> {
    const chains = Array.from({ length: CHAINS }, (_, chain) => ({
      chain,
      n: position[chain] ?? 0,
      read: [] as (z.infer<typeof Stored> | undefined)[],
    }));
    for (;;) {
      const empty = chains.filter(({ read, n }) => read.length === 0 && n > 0);
      await Promise.all(
        empty.map(async (one) => {
          const numbers = Array.from({ length: Math.min(WINDOW, one.n) }, (_, i) => one.n - i);
          one.read = (await Promise.all(numbers.map((n) => this.#get(one.chain, n, signal)))).map(entryIn);
        }),
      );
      const [first] = chains
        .filter(({ read }) => read.length > 0)
        .sort((a, b) => (b.read[0]?.startedAt ?? 0) - (a.read[0]?.startedAt ?? 0));
      if (!first) return;
      const entry = first.read.shift();
      first.n -= 1;
      const job = entry && this.#names.named(entry.name);
      yield { listed: entry && job && { ...entry, job }, next: chains.map(({ n }) => n) };
    }
  }

  /**
   * The number of a chain's newest entry; `exact`: there is none after it. From nothing it is found by its binary digits,
   * as entries of jobs that are gone may be gone as well, but for those on this way.
   */
  async #end(chain: number, exact = false, signal?: AbortSignal): Promise<number> {
    const remembered = this.#memory.ends.get(this.#id(chain, 0));
    const known = remembered && Date.now() < remembered.at + OF_USE ? remembered : undefined;
    const isFresh = known !== undefined && Date.now() < known.at + KNOWN;
    if (isFresh && !exact) return known.n;
    let low = known && (isFresh || (await this.#get(chain, known.n, signal))) ? known.n : 0;
    let high = Number.POSITIVE_INFINITY;
    const narrow = async (numbers: readonly number[]) => {
      const there = await Promise.all(numbers.map((n) => this.#get(chain, n, signal)));
      const missing = there.findIndex((record) => !record);
      low = numbers[(missing < 0 ? numbers.length : missing) - 1] ?? low;
      high = numbers[missing] ?? high;
    };
    const doubled = (from: number, first: number) =>
      Array.from({ length: AT_ONCE }, (_, i) => from + first * 2 ** i).filter((n) => n < high);
    // Most often there is none, or one more.
    const base = low;
    await narrow([base + 1]);
    for (let step = 2; high === Number.POSITIVE_INFINITY; step *= 2 ** AT_ONCE) await narrow(doubled(base, step));
    while (high - low > 1) {
      const from = low;
      for (let step = 1; from + step < high; step *= 2 ** AT_ONCE) await narrow(doubled(from, step));
    }
    this.#remember(chain, low);
    return low;
  }

  #remember(chain: number, n: number): void {
    this.#memory.trim();
    if (n > 0) this.#memory.ends.set(this.#id(chain, 0), { n, at: Date.now() });
  }

  #get(chain: number, n: number, signal?: AbortSignal): Promise<PromiseRecord | undefined> {
    return this.#client.call({ kind: "promise.get", data: { id: this.#id(chain, n) } }, signal);
  }

  #id(chain: number, n: number): string {
    return this.#names.listId(`${chain}.${n}`);
  }
}

function entryIn(record: PromiseRecord | undefined): z.infer<typeof Stored> | undefined {
  return record && Stored.safeParse(decodeValue(record.param)).data;
}

function chainOf(name: string): number {
  let sum = 0;
  for (let i = 0; i < name.length; i++) sum = (sum * 31 + name.charCodeAt(i)) >>> 0;
  return sum % CHAINS;
}
