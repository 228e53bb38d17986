import {
  childOf,
  decodeValue,
  getOf,
  last,
  limitSlotId,
  type PromiseRecord,
  type PromiseWatch,
  type ResonateClient,
  resolveOf,
} from "../../core/resonate/index.ts";

/** How long a worker uses a slot for one attempt after another before other workers can have it, in milliseconds. */
const MAX_SLOT_USE_MS = 2_000;

/** How much longer a slot is reserved than an attempt may take, in milliseconds. */
const SLOT_MARGIN_MS = 2_000;

/** How much longer the reservation of a rate lasts than its span, to allow for the request's latency, in milliseconds. */
const MAX_LATENCY_MS = 100;

/** How long the known end of a sequence is trusted, in milliseconds: older promises may have been removed. */
const MAX_TRUST_MS = 3_600_000;

export interface LimitHost {
  namespace: string;
  client: ResonateClient;
  watcher: Pick<PromiseWatch, "watch">;
  /** The length of a lease, in milliseconds, for which an unreachable server is retried. */
  leaseTime: number;
}

/** What the slots of one limit share. */
export interface SlotHost extends LimitHost {
  /** How far the server's clock is ahead of this one, in milliseconds. */
  skew: number;
  /** Called when another worker's reservation ends. */
  onFreed(): void;
}

/**
 * One slot of a limit: a sequence of promises. The worker that creates the next promise has the slot while that promise is
 * pending. If the worker dies, the promise times out.
 */
export class LimitSlot {
  readonly #host: SlotHost;
  readonly #limit: string;
  /** The number of this slot within the limit, counted from 0. */
  readonly #n: number;
  /** The number of the promise that is known or expected to be the last. */
  #link = 1;
  /** When `#link` was last confirmed, by `performance.now()`. */
  #checkedAt = performance.now();
  #isTaken = false;
  /** How long an attempt in this slot may take, in milliseconds, and until when one may begin, by `performance.now()`. */
  #time = 0;
  #until = 0;

  constructor(host: SlotHost, limit: string, n: number) {
    this.#host = host;
    this.#limit = limit;
    this.#n = n;
  }

  /** Whether an attempt of at most `time` milliseconds fits into the current reservation. */
  fits(time = 0): boolean {
    return time <= this.#time && performance.now() <= this.#until;
  }

  /** Reserves the slot for attempts of at most `time` milliseconds; false when another worker has it. */
  reserve(time: number): Promise<boolean> {
    return this.#take(MAX_SLOT_USE_MS + time + SLOT_MARGIN_MS, time + SLOT_MARGIN_MS, (length) => {
      this.#time = time;
      this.#until = this.#checkedAt + Math.min(MAX_SLOT_USE_MS, length - time - SLOT_MARGIN_MS / 2);
    });
  }

  /** Reserves the slot for `per` milliseconds and one attempt, which begins now; false when another worker has it. */
  reserveFor(per: number): Promise<boolean> {
    return this.#take(per + MAX_LATENCY_MS, per, () => {
      this.#time = 0;
      this.#until = performance.now() + per;
    });
  }

  /** Must be called when the reservation has timed out by itself. */
  noteTimeout(): void {
    this.#link += 1;
  }

  /** Reserves the slot for `lasting` milliseconds. By the server's clock it must last at least `least`. */
  async #take(lasting: number, least: number, taken: (length: number) => void): Promise<boolean> {
    const { client, leaseTime } = this.#host;
    if (this.#isTaken && (await this.#isHeldElsewhere())) return false;
    this.#isTaken = false;
    if (performance.now() - this.#checkedAt > MAX_TRUST_MS) this.#link = 1;
    const by = crypto.randomUUID();
    for (; ; this.#link += 1) {
      this.#checkedAt = performance.now();
      const timeoutAt = Math.ceil(Date.now() + this.#host.skew + lasting);
      const action = childOf(this.#id(), timeoutAt, { param: { by } });
      const record = await client.call(action, undefined, leaseTime);
      if (!record) throw new Error("a slot of a limit cannot be reserved");
      if ((decodeValue(record.param) as { by?: unknown } | undefined)?.by === by) {
        const length = record.timeoutAt - record.createdAt;
        if (record.state === "pending" && length >= least) {
          taken(length);
          return true;
        }
        // The server is slow to reach or its clock is ahead of this one, so the reservation would end too soon.
        this.#host.skew += Math.max(least - length, 0) + MAX_LATENCY_MS;
        await this.#settle();
      } else if (record.state === "pending") {
        this.#isTaken = await this.#isHeldElsewhere();
        if (this.#isTaken) return false;
      } else await this.#skipEnded();
    }
  }

  /** Frees the slot for other workers. */
  async release(): Promise<void> {
    await this.#settle().catch(() => {}); // otherwise it times out
    this.#link += 1;
  }

  async #settle(): Promise<void> {
    await this.#host.client.call(resolveOf(this.#id()), undefined, this.#host.leaseTime);
  }

  /** Moves to the end of the sequence, as other workers have used the slot in the meantime. */
  async #skipEnded(): Promise<void> {
    const get = (link: number) => this.#get(link);
    const { n, entry } = await last(get, { after: this.#link, isLast: ({ state }) => state === "pending" });
    this.#link = entry?.state === "pending" ? n - 1 : n;
  }

  /** Whether another worker has the slot; `onFreed` is called when it ends. */
  async #isHeldElsewhere(): Promise<boolean> {
    const { watcher, skew, onFreed } = this.#host;
    const record = await watcher.watch(this.#id(), false, onFreed);
    return record?.state === "pending" && record.timeoutAt > Date.now() + skew;
  }

  #get(link: number): Promise<PromiseRecord | undefined> {
    const { client, leaseTime } = this.#host;
    return client.call(getOf(this.#id(link)), undefined, leaseTime);
  }

  #id(link = this.#link): string {
    return limitSlotId(this.#limit, this.#n, link);
  }
}
