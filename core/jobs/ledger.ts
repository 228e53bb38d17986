/**
 * How many jobs a caller may start. For jobs that take up to an hour there is a ledger of the places that are taken, for
 * those that take up to a day another one, and so on, anew in every hour, day and so on.
 *
 * A ledger is a chain of promises, `t1`, `t2`, …, each of which says how many places have been taken altogether: a start
 * adds the next link, for as many places as its job counts for, or for other starts as well. To create a promise is one
 * atomic step, wherever it happens; whoever finds the number taken reads what it says and adds the one after. So more
 * places than there are cannot be taken, whatever dies when; what dies between the taking and the start, or between a job's
 * end and the giving back, costs its places until the period is over.
 *
 * What jobs give back that end early is a second chain, `g1`, `g2`, …. A mark stands at each 4 per cent of all places that
 * have come back by it, so that one question tells whether as many have as a start needs, however many links there are.
 *
 * Who knows nothing of a chain has to look for its end, in steps that double. All edges of a deployment are spared that: one
 * takes the places for all of them and remembers how far the chains were (`functions/listener/quota-keeper.ts`). How far the second
 * one was stands with a job's places: whoever ends the job begins there.
 */
import type { ResonateClient } from "../store/client.ts";
import { childOf, decodeValue } from "../store/codec.ts";
import { type Chain, type Places, tagOf, unitOf, type Wanted } from "./quota.ts";

/** How many links that others have added a start comes upon, one after another, before it looks for the end. */
const MOST_MET = 2;

/** How long a start waits for another of its process to take places for both, in milliseconds. */
const TURN = 2_000;

/** Of how many callers and periods something is remembered. */
const MOST_VIEWS = 2_000;

/** How far the chains of a ledger are known to be. */
export interface Known {
  taken: Chain;
  given: Chain;
}

/** What is known of a caller's places in a period. */
interface View extends Known {
  /** Who this process is to the ledger. */
  by: string;
  /** Places taken that no job has yet. */
  ready: number;
  /** Until when a start takes places for those that wait, in milliseconds since the epoch. */
  turn: number;
  /** The starts that wait for a place, each with until when, if it lives. */
  waiting: Map<object, number>;
}

type Client = Pick<ResonateClient, "call">;

/** The ledgers that this isolate, object or process knows of. Values alone, no promises: requests may share them. */
export class Ledgers {
  readonly #views = new Map<string, View>();

  /**
   * Takes places for a job: one request, and one more for each link of the chain that is not known. Resolves to the tag of
   * the job that has them, undefined where there is no room.
   */
  async take(client: Client, wanted: Wanted): Promise<string | undefined> {
    const { base, most, count } = wanted;
    const view = this.#view(base);
    const patience = Date.now() + TURN;
    const self = {};
    for (let hasRoom = count <= most; hasRoom; ) {
      if (view.ready >= count) {
        view.waiting.delete(self);
        view.ready -= count;
        return tagOf({ base, count, unit: unitOf(most), given: view.given });
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
        hasRoom = await this.#fill(client, view, wanted);
      } finally {
        if (view.turn === turn) view.turn = 0;
      }
    }
    return undefined;
  }

  /** Gives places back: one request, one for each mark that is reached by it, and some more where others do as well. */
  async giveBack(client: Client, { base, count, unit, given: from }: Places): Promise<void> {
    const { given } = this.#view(base);
    learn(given, from);
    const by = crypto.randomUUID();
    for (let met = 0; ; ) {
      const link = given.link + 1;
      const before = given.sum;
      const found = await create(client, `${base}.g${link}`, { by, sum: before + count });
      learn(given, { link, sum: found.sum });
      if (found.by === by) {
        await this.#mark(client, base, unit, { link, before, sum: before + count });
        return;
      }
      if (++met <= MOST_MET) continue;
      await this.#seek(client, `${base}.g`, given);
      met = 1;
    }
  }

  /** How far the chains of a ledger are known to be; undefined where nothing is known. */
  known(base: string): Known | undefined {
    const view = this.#views.get(base);
    return view && { taken: { ...view.taken }, given: { ...view.given } };
  }

  /** Chains are known to go so far at least. */
  tell(base: string, known: Known): void {
    learnAll(this.#view(base), known);
  }

  /** Sees to it that as many places as are wanted are ready; false where there is no room for them. */
  async #fill(client: Client, view: View, { base, most, count }: Wanted): Promise<boolean> {
    const { taken, given, by } = view;
    for (let met = 0; view.ready < count; ) {
      const room = () => most + given.sum - taken.sum;
      const need = count - view.ready;
      if (room() < need) await this.#look(client, base, given, { more: need - room(), unit: unitOf(most) });
      if (room() < need) return false;
      const link = taken.link + 1;
      const others = [...view.waiting].filter(([, until]) => Date.now() < until);
      const more = Math.min(need + others.length, room());
      const found = await create(client, `${base}.t${link}`, { given, by, sum: taken.sum + more, more });
      if (link <= taken.link) continue;
      learn(taken, { link, sum: found.sum });
      learnAll(view, found);
      // An answer that was lost is known by this as well.
      if (found.by === by) {
        view.ready += Number(found.more);
        for (const [other] of others) view.waiting.delete(other);
      } else if (++met > MOST_MET) {
        await this.#seek(client, `${base}.t`, taken);
        met = 1;
      }
    }
    return true;
  }

  /** Sets the marks that a link which gives places back has reached. */
  async #mark(
    client: Client,
    base: string,
    unit: number,
    at: { link: number; before: number; sum: number },
  ): Promise<void> {
    if (unit === 0) return;
    const [first, last] = [Math.floor(at.before / unit) + 1, Math.floor(at.sum / unit)];
    const says = { link: at.link, sum: at.sum };
    const marks = Array.from({ length: last - first + 1 }, (_, i) => `${base}.g${unit}.${first + i}`);
    await Promise.all(marks.map((id) => create(client, id, says)));
  }

  /** Looks whether `more` has been given back than was known: two requests at most. */
  async #look(
    client: Client,
    base: string,
    given: Chain,
    { more, unit }: { more: number; unit: number },
  ): Promise<void> {
    const wanted = given.sum + more;
    learn(given, await read(client, `${base}.g${unit}.${Math.ceil(wanted / unit)}`));
    // What came back since the last mark, if it is a single link.
    if (given.sum < wanted) await this.#read(client, `${base}.g`, given, given.link + 1);
  }

  /** Looks for the end of a chain: afterwards it is the link that is known, or the one after it. */
  async #seek(client: Client, id: string, chain: Chain): Promise<void> {
    let missing = Number.POSITIVE_INFINITY;
    for (let step = 2; chain.link + 2 < missing; step *= 2) {
      const link = missing === Number.POSITIVE_INFINITY ? chain.link + step : (chain.link + missing) >> 1;
      if (!(await this.#read(client, id, chain, link))) missing = link;
    }
  }

  async #read(client: Client, id: string, chain: Chain, link: number): Promise<boolean> {
    const found = await read(client, id + link);
    if (found) learn(chain, { link, sum: found.sum });
    return found !== undefined;
  }

  #view(base: string): View {
    let view = this.#views.get(base);
    if (!view) {
      const none = { link: 0, sum: 0 };
      const rest = { ready: 0, turn: 0, waiting: new Map() };
      view = { by: crypto.randomUUID(), taken: { ...none }, given: { ...none }, ...rest };
      if (this.#views.size >= MOST_VIEWS) this.#views.delete(this.#views.keys().next().value as string);
      this.#views.set(base, view);
    }
    return view;
  }
}

/** What a promise of a ledger says. */
interface Link extends Partial<Known> {
  by?: unknown;
  link?: unknown;
  sum?: unknown;
  more?: unknown;
}

function learn(chain: Chain, { link, sum }: { link?: unknown; sum?: unknown } = {}): void {
  if (!(Number(link) > chain.link)) return;
  chain.link = Number(link);
  chain.sum = Math.max(chain.sum, Number(sum) || 0);
}

/** What versions before say of both chains is learned as well. */
function learnAll(view: View, { taken, given }: Partial<Known>): void {
  learn(view.taken, taken);
  learn(view.given, given);
}

/** What the promise with this id says; undefined where there is none. */
async function read(client: Client, id: string): Promise<Link | undefined> {
  const record = await client.call({ kind: "promise.get", data: { id } });
  return record && ((decodeValue(record.param) as Link | undefined) ?? {});
}

/** What the promise with this id says: `says`, unless there was one. It has no use of its own, and has ended. */
async function create(client: Client, id: string, says: object): Promise<Link> {
  const record = await client.call(childOf(id, id, Date.now(), { param: says }));
  return (decodeValue(record?.param ?? {}) as Link | undefined) ?? {};
}
