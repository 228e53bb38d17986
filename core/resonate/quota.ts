/**
 * How many jobs a caller may start, without anything that counts them. For jobs that take up to an hour there is a ledger of
 * the places that are taken, for those that take up to a day another one, and so on, anew in every hour, day and so on.
 *
 * A ledger is a chain of promises, `t1`, `t2`, …, each of which says how many places have been taken altogether: a start
 * adds the next link, for as many places as its job counts for, or for its isolate's other starts as well. To create a
 * promise is one atomic step, wherever it happens; whoever finds the number taken reads what it says and adds the one after.
 * What jobs give back that end early is a second chain, `g1`, `g2`, …, which is looked at when there is no room otherwise:
 * the more of it is known, the more there is. So more places than there are cannot be taken, whatever dies when; what dies
 * between the taking and the start, or between a job's end and the giving back, costs its places until the period is over.
 *
 * Who knows nothing of a chain has to look for its end, in steps that double. That is spared those who start little: a few
 * places are set aside for the slices of the period, so many for each, and whoever comes first in a slice has them (`s0`,
 * `s1`, …). Whoever comes later reads there how far the chains were: what the first one knew, or what the first one found
 * who had to look, with which that promise is settled.
 */
import { NotStarted } from "../jobs/job.ts";
import type { ResonateClient } from "./client.ts";
import { childOf, decodeValue, encodeValue } from "./codec.ts";

const HOUR = 3_600_000;

/** How long jobs take, in milliseconds, and what that is called. */
const LENGTHS = [
  { ms: HOUR, words: "an hour" },
  { ms: 24 * HOUR, words: "a day" },
  { ms: 30 * 24 * HOUR, words: "30 days" },
  { ms: 366 * 24 * HOUR, words: "a year" },
] as const;

/** The share of the places that is set aside for the slices of a period, and how many slices it has. */
const ASIDE = 0.03;
const SLICES = 6;

/** The share of them that an isolate keeps for its next start when they turn out not to be needed. */
const SPARE = 0.005;

/** How many links that others have added a start comes upon, one after another, before it looks for the end. */
const MOST_MET = 2;

/** How long a start waits for another of its isolate to take places for both, in milliseconds. */
const TURN = 2_000;

/** Of how many callers and periods something is remembered. */
const MOST_VIEWS = 2_000;

/** Of how many jobs it is remembered that they are there. */
const MOST_SEEN = 10_000;

/** The caller has started as many jobs as it may. */
export class QuotaExceeded extends NotStarted {
  override name = "QuotaExceeded";
}

/** The job to start: how long it is expected to take from `now`, in milliseconds, and for how many jobs it counts. */
export interface Start {
  duration: number;
  now: number;
  count: number;
}

/** Places that were taken. As a text it is the tag of the job that has them. */
export class Taken {
  /** What the promise ids of the period begin with. */
  readonly base: string;
  readonly count: number;
  readonly #by = crypto.randomUUID();

  constructor(base: string, count: number) {
    this.base = base;
    this.count = count;
  }

  toString(): string {
    return `${this.base}.g ${this.count} ${this.#by}`;
  }
}

/** What is known of a chain: a link, and the sum that it says. */
interface Chain {
  link: number;
  sum: number;
}

/** What is known of a caller's places in a period. */
interface View {
  /** Who this isolate is to the ledger. */
  by: string;
  taken: Chain;
  given: Chain;
  /** Places of this isolate that no job has yet. */
  ready: number;
  /** The slice whose places are gone. */
  slice: number | undefined;
  /** Until when a start takes places for those that wait, in milliseconds since the epoch. */
  turn: number;
  /** The starts that wait for a place, each with until when, if it lives. */
  waiting: Map<object, number>;
}

type Client = Pick<ResonateClient, "call">;

/** The places that this isolate or process knows of. Values alone, no promises: requests may share them. */
export class Quota {
  readonly #views = new Map<string, View>();
  readonly #seen = new Set<string>();

  /** Whether a job is known to be there, which needs no place then. */
  knows(id: string): boolean {
    return this.#seen.has(id);
  }

  /** A job is there. */
  saw(id: string): void {
    if (this.#seen.size >= MOST_SEEN) this.#seen.delete(this.#seen.values().next().value as string);
    this.#seen.add(id);
  }

  /**
   * Takes places for a job: one request, and one more for each link of the chain that is not known.
   *
   * @throws {QuotaExceeded} with the limit and when to try again
   */
  async take(client: Client, idOf: (place: string) => string, most: number, start: Start): Promise<Taken> {
    const { duration, now, count } = start;
    const length = LENGTHS.find(({ ms }) => duration <= ms) ?? LENGTHS[3];
    const period = Math.floor(now / length.ms);
    const base = idOf(`${length.ms / HOUR}.${period}`);
    const view = this.#view(base);
    const patience = Date.now() + TURN;
    const self = {};
    for (let hasRoom = count <= most; hasRoom; ) {
      if (view.ready >= count) {
        view.waiting.delete(self);
        view.ready -= count;
        return new Taken(base, count);
      }
      if (Date.now() < Math.min(view.turn, patience)) {
        if (count === 1) view.waiting.set(self, patience);
        await new Promise((resolve) => setTimeout(resolve, 2 + Math.random() * 8));
        continue;
      }
      view.waiting.delete(self);
      const turn = Date.now() + TURN;
      view.turn = turn;
      try {
        hasRoom = await this.#fill(client, base, view, { count, most, now, ms: length.ms });
      } finally {
        if (view.turn === turn) view.turn = 0;
      }
    }
    const minutes = Math.ceil(((period + 1) * length.ms - now) / 60_000);
    const counts = count === 1 ? "" : `this counts as ${count} jobs, and `;
    throw new QuotaExceeded(
      `${counts}a caller may start ${most} jobs that take up to ${length.words} in ${length.words}. Try again in ${minutes} minutes`,
    );
  }

  /** Places that were taken turn out not to be needed. */
  async keep(client: Client, { base, count }: Taken, most: number): Promise<void> {
    const view = this.#view(base);
    const spare = Math.min(count, Math.max(Math.floor(most * SPARE) - view.ready, 0));
    view.ready += spare;
    if (count > spare) await this.giveBack(client, base, count - spare);
  }

  /** Gives places back: one request, and some more where others do as well. */
  async giveBack(client: Client, base: string, count: number): Promise<void> {
    const { given } = this.#view(base);
    const by = crypto.randomUUID();
    for (let met = 0; ; ) {
      const link = given.link + 1;
      const found = await create(client, `${base}.g${link}`, { by, sum: given.sum + count });
      learn(given, link, found.sum);
      if (found.by === by) return;
      if (++met <= MOST_MET) continue;
      await this.#seek(client, `${base}.g`, given);
      met = 1;
    }
  }

  /** Sees to it that `count` places are ready, in a period of `ms` milliseconds; false where there is no room for them. */
  async #fill(
    client: Client,
    base: string,
    view: View,
    { count, most, now, ms }: { count: number; most: number; now: number; ms: number },
  ): Promise<boolean> {
    const { taken, given, by } = view;
    const known = () => ({ taken: { ...taken }, given: { ...given } });
    const slices = Math.min(SLICES, Math.floor(most * ASIDE));
    const each = slices && Math.floor((most * ASIDE) / slices);
    const slice = Math.floor(((now % ms) / ms) * slices);
    const sliceId = `${base}.s${slice}`;
    if (slices > 0 && view.slice !== slice) {
      const found = await create(client, sliceId, { ...known(), by }, now - (now % ms) + ms);
      if (found.by !== by) learnAll(view, found);
      else if (view.slice !== slice) view.ready += each;
      view.slice = slice;
    }
    const knewNothing = slices > 0 && taken.link === 0;
    let hasLooked = false;
    for (let met = 0; view.ready < count; ) {
      const room = () => most - slices * each + given.sum - taken.sum;
      const need = count - view.ready;
      if (room() < need) await this.#look(client, `${base}.g`, given, need - room());
      if (room() < need) return false;
      const link = taken.link + 1;
      const others = [...view.waiting].filter(([, until]) => Date.now() < until);
      const more = Math.min(need + others.length, room());
      const sum = taken.sum + more;
      const found = await create(client, `${base}.t${link}`, { ...known(), by, sum, more });
      if (link <= taken.link) continue;
      learn(taken, link, found.sum);
      learnAll(view, found);
      // An answer that was lost is known by this as well.
      if (found.by === by) {
        view.ready += Number(found.more);
        for (const [other] of others) view.waiting.delete(other);
      } else if (++met > MOST_MET) {
        await this.#seek(client, `${base}.t`, taken);
        met = 1;
        hasLooked = true;
      }
    }
    if (hasLooked && knewNothing) {
      const data = { id: sliceId, state: "resolved" as const, value: encodeValue(known()) };
      // Without it the next one looks as well.
      await client.call({ kind: "promise.settle", data }).catch(() => {});
    }
    return true;
  }

  /** Looks for the end of a chain: afterwards it is the link that is known, or the one after it. */
  async #seek(client: Client, id: string, chain: Chain): Promise<void> {
    let missing = Number.POSITIVE_INFINITY;
    for (let step = 2; chain.link + 2 < missing; step *= 2) {
      const link = missing === Number.POSITIVE_INFINITY ? chain.link + step : (chain.link + missing) >> 1;
      if (!(await this.#read(client, id, chain, link))) missing = link;
    }
  }

  /** Looks whether `more` than was known has been given back. */
  async #look(client: Client, id: string, chain: Chain, more: number): Promise<void> {
    const wanted = chain.sum + more;
    let missing = Number.POSITIVE_INFINITY;
    // Each link gives at least one back, and often all that is wanted.
    for (let step = 1; chain.sum < wanted && chain.link + 1 < missing; step = wanted - chain.sum) {
      const link = missing === Number.POSITIVE_INFINITY ? chain.link + step : (chain.link + missing) >> 1;
      if (!(await this.#read(client, id, chain, link))) missing = link;
    }
  }

  async #read(client: Client, id: string, chain: Chain, link: number): Promise<boolean> {
    const record = await client.call({ kind: "promise.get", data: { id: id + link } });
    if (record) learn(chain, link, (decodeValue(record.param) as Link | undefined)?.sum);
    return record !== undefined;
  }

  #view(base: string): View {
    let view = this.#views.get(base);
    if (!view) {
      const none = { link: 0, sum: 0 };
      const rest = { ready: 0, slice: undefined, turn: 0, waiting: new Map() };
      view = { by: crypto.randomUUID(), taken: { ...none }, given: { ...none }, ...rest };
      if (this.#views.size >= MOST_VIEWS) this.#views.delete(this.#views.keys().next().value as string);
      this.#views.set(base, view);
    }
    return view;
  }
}

/** What a job's tag says of its places. Those that versions before took by their numbers are given back to nobody. */
export function placesIn(tag: string): { base: string; count: number } {
  const [, base = "", count = 0] = /^(.*)\.g (\d+) \S+$/s.exec(tag) ?? [];
  return { base, count: Number(count) };
}

/** Whether the period of places is over: nothing is given back then. */
export function isOver(base: string, now: number): boolean {
  const [, hours, period] = /:(\d+)\.(\d+)$/.exec(base) ?? [];
  return now >= (Number(period) + 1) * Number(hours) * HOUR;
}

/** What a promise of a ledger says. */
interface Link {
  by?: unknown;
  sum?: unknown;
  more?: unknown;
  /** What was known of the chains to whoever created it. */
  taken?: Chain;
  given?: Chain;
}

function learn(chain: Chain, link: number, sum: unknown): void {
  if (link <= chain.link) return;
  chain.link = link;
  chain.sum = Math.max(chain.sum, Number(sum) || 0);
}

function learnAll(view: View, { taken, given }: Link): void {
  if (taken) learn(view.taken, taken.link, taken.sum);
  if (given) learn(view.given, given.link, given.sum);
}

/** What the promise with this id says: `says`, unless there was one. It has no use of its own, and ends by itself. */
async function create(client: Client, id: string, says: object, timeoutAt = Date.now()): Promise<Link> {
  const record = await client.call(childOf(id, id, timeoutAt, { param: says }));
  return { ...(decodeValue(record?.param ?? {}) as Link), ...(decodeValue(record?.value ?? {}) as Link) };
}
