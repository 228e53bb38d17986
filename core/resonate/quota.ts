/**
 * How many jobs a caller may start, without anything that counts them. There are places for jobs that take up to an hour,
 * as many for those that take up to a day, and so on, anew in every hour, day and so on. They are numbered from 1, and a
 * start takes a number that nobody has: creating its promise is one atomic step, wherever it happens.
 *
 * A job that ends before its hour is over gives its place back: not the number, which stays taken, but one more at the end.
 * What was given back is a chain of promises, each of which says how much that is altogether; so number `n` may be taken
 * when there are `n` places, or `n` less what was given back. More than that are never in use, whatever dies; what dies
 * between a job's end and the giving back costs a place until its hour is over.
 *
 * Which numbers are free nobody can ask. An isolate remembers which it knows to be taken, begins at a random one and goes
 * on from there: two of them meet seldom before nearly all are taken.
 */
import type { ResonateClient } from "./client.ts";
import { childOf, decodeValue } from "./codec.ts";

const HOUR = 3_600_000;

/** How long jobs take, in milliseconds, and what that is called. */
const LENGTHS = [
  { ms: HOUR, words: "an hour" },
  { ms: 24 * HOUR, words: "a day" },
  { ms: 30 * 24 * HOUR, words: "30 days" },
  { ms: 366 * 24 * HOUR, words: "a year" },
] as const;

/** How many numbers that turn out to be taken a start tries for each place; hardly any is free then. */
const MOST_TAKEN = 12;

/** How many places are asked for at once. */
const AT_ONCE = 16;

/** Of how many callers and periods something is remembered. */
const MOST_VIEWS = 2_000;

/** Of how many jobs it is remembered that they are there. */
const MOST_SEEN = 10_000;

/** A share of the places that an isolate keeps for the next start when they turn out not to be needed. */
const SPARE = 0.01;

/** The caller has started as many jobs as it may. */
export class QuotaExceeded extends Error {
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
  /** The promise id that those of the places begin with. */
  readonly base: string;
  readonly numbers: readonly number[];
  readonly by: string;

  constructor(base: string, numbers: readonly number[], by: string) {
    this.base = base;
    this.numbers = numbers;
    this.by = by;
  }

  toString(): string {
    return `${this.base} ${this.numbers.length} ${this.by}`;
  }
}

/** What is known of a caller's places in a period. */
interface View {
  /** Numbers of which it is not known whether they are taken: from, to. */
  unknown: [number, number][];
  /** The highest number that may be taken. */
  top: number;
  /** Where the numbers last taken go on, upwards and downwards. */
  up: number | undefined;
  down: number | undefined;
  /** The last known link of what was given back, and how much that was. */
  link: number;
  returned: number;
  /** How many links further it is looked for more. */
  ahead: number;
  spare: number[];
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
   * Takes places for a job: one request, and one more to find that places were given back.
   *
   * @throws {QuotaExceeded} with the limit and when to try again
   */
  async take(client: Client, idOf: (place: string) => string, most: number, start: Start): Promise<Taken> {
    const { duration, now, count } = start;
    const length = LENGTHS.find(({ ms }) => duration <= ms) ?? LENGTHS[3];
    const period = Math.floor(now / length.ms);
    const base = idOf(`${length.ms / HOUR}.${period}`);
    const by = crypto.randomUUID();
    const view = this.#view(base, most);
    const numbers = count > most ? [] : view.spare.splice(0, count);
    let refused = 0;
    try {
      while (numbers.length < count && count <= most && refused < MOST_TAKEN * count) {
        const batch = pick(view, Math.min(count - numbers.length, AT_ONCE));
        if (batch.length === 0) {
          if (!(await this.#look(client, base, view, most))) break;
          continue;
        }
        const mine = await Promise.all(batch.map(({ n }) => create(client, `${base}.p${n}`, { by })));
        for (const [i, { n, from }] of batch.entries()) {
          if ((mine[i] as { by?: unknown } | undefined)?.by === by) numbers.push(n);
          else {
            refused += 1;
            if (from !== "down") view.up = undefined;
            if (from !== "up") view.down = undefined;
          }
        }
      }
    } catch (error) {
      view.spare.push(...numbers);
      throw error;
    }
    if (numbers.length === count) return new Taken(base, numbers, by);
    await this.#keep(client, base, view, most, numbers);
    const minutes = Math.ceil(((period + 1) * length.ms - now) / 60_000);
    const counts = count === 1 ? "" : `this counts as ${count} jobs, and `;
    throw new QuotaExceeded(
      `${counts}a caller may start ${most} jobs that take up to ${length.words} in ${length.words}. Try again in ${minutes} minutes`,
    );
  }

  /** Places that were taken turn out not to be needed. */
  async keep(client: Client, { base, numbers }: Taken, most: number): Promise<void> {
    await this.#keep(client, base, this.#view(base, most), most, numbers);
  }

  async #keep(client: Client, base: string, view: View, most: number, numbers: readonly number[]): Promise<void> {
    const spare = numbers.slice(0, Math.max(Math.floor(most * SPARE) - view.spare.length, 0));
    view.spare.push(...spare);
    if (numbers.length > spare.length) await this.giveBack(client, base, numbers.length - spare.length);
  }

  /** Gives places back: one request, and some more where others do as well. */
  async giveBack(client: Client, base: string, count: number): Promise<void> {
    const view = this.#view(base, 0);
    const by = crypto.randomUUID();
    for (;;) {
      const link = view.link + 1;
      const found = await create(client, `${base}.b${link}`, { by, sum: view.returned + count });
      learn(view, link, found);
      if ((found as { by?: unknown } | undefined)?.by === by) return;
      // Others have given places back since this was last looked at, perhaps many.
      for (let ahead = 1; await this.#read(client, base, view, link + ahead); ahead *= 2);
    }
  }

  /** Whether there are more places than were known. */
  async #look(client: Client, base: string, view: View, most: number): Promise<boolean> {
    if (most + view.returned <= view.top) {
      const { link, ahead } = view;
      const isFar = await this.#read(client, base, view, link + ahead);
      view.ahead = isFar ? Math.min(2 * ahead, 64) : 1;
      if (!isFar && ahead > 1) await this.#read(client, base, view, link + 1);
    }
    const top = most + view.returned;
    if (top <= view.top) return false;
    view.unknown.push([view.top + 1, top]);
    view.top = top;
    return true;
  }

  async #read(client: Client, base: string, view: View, link: number): Promise<boolean> {
    const record = await client.call({ kind: "promise.get", data: { id: `${base}.b${link}` } });
    if (record) learn(view, link, decodeValue(record.param));
    return record !== undefined;
  }

  #view(base: string, most: number): View {
    let view = this.#views.get(base);
    if (!view) {
      const nothing = {
        unknown: [],
        top: 0,
        up: undefined,
        down: undefined,
        link: 0,
        returned: 0,
        ahead: 1,
        spare: [],
      };
      view = nothing as View;
      if (this.#views.size >= MOST_VIEWS) this.#views.delete(this.#views.keys().next().value as string);
      this.#views.set(base, view);
    }
    if (view.top === 0 && most > 0) {
      view.top = most;
      view.unknown.push([1, most]);
      view.up = 1 + Math.floor(Math.random() * most);
      view.down = view.up - 1;
    }
    return view;
  }
}

/** What a job's tag says of its places: what their ids begin with, and how many there are. */
export function placesIn(tag: string): { base: string; count: number } {
  const [, base = "", count = 0] = /^(.*) (\d+) \S+$/s.exec(tag) ?? [];
  return { base, count: Number(count) };
}

/** Whether the period of places is over: nothing is given back then. */
export function isOver(base: string, now: number): boolean {
  const [, hours, period] = /:(\d+)\.(\d+)$/.exec(base) ?? [];
  return now >= (Number(period) + 1) * Number(hours) * HOUR;
}

/** Numbers that may be free: next to those last taken, otherwise in the middle of where least is known. */
function pick(view: View, count: number): { n: number; from: "up" | "down" | "middle" }[] {
  const picked: ReturnType<typeof pick> = [];
  while (picked.length < count && view.unknown.length > 0) {
    if (view.up !== undefined && remove(view, view.up)) picked.push({ n: view.up++, from: "up" });
    else if (view.down !== undefined && remove(view, view.down)) picked.push({ n: view.down--, from: "down" });
    else {
      const [low, high] = view.unknown.reduce((a, b) => (b[1] - b[0] > a[1] - a[0] ? b : a));
      const n = Math.floor((low + high) / 2);
      remove(view, n);
      view.up = n + 1;
      view.down = n - 1;
      picked.push({ n, from: "middle" });
    }
  }
  return picked;
}

/** Takes a number out of the unknown ones. Whether it was one. */
function remove({ unknown }: View, n: number): boolean {
  const at = unknown.findIndex(([low, high]) => low <= n && n <= high);
  const [low, high] = unknown[at] ?? [0, 0];
  if (at < 0) return false;
  const rest: [number, number][] = [
    [low, n - 1],
    [n + 1, high],
  ];
  unknown.splice(at, 1, ...rest.filter(([from, to]) => from <= to));
  return true;
}

function learn(view: View, link: number, found: unknown): void {
  const { sum } = (found ?? {}) as { sum?: unknown };
  if (link <= view.link) return;
  view.link = link;
  if (typeof sum === "number" && sum > view.returned) view.returned = sum;
}

/** What the promise with this id says: `says`, unless there was one. It has no use of its own, and ends at once. */
async function create(client: Client, id: string, says: object): Promise<unknown> {
  const record = await client.call(childOf(id, id, Date.now(), { param: says }));
  return record && decodeValue(record.param);
}
