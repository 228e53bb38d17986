/** What a caller's object shows its caller: who is told of jobs, and what is scheduled. */
import type { Narrowed } from "./event-log.ts";

/** A subscription by web hook. Of the receiver's address only the host is shown. Times are ISO 8601. */
export interface SeenSubscription {
  id: string;
  /** The type of events. */
  name: string;
  narrowed: Narrowed;
  host: string;
  /** When it ends unless its client renews it. */
  until: string;
  /** The `deliveryStatus` of the extension. */
  status: { active: boolean; lastDeliveryAt: string | null; lastError: string | null; failedSince?: string | null };
}

/** What a client polls or streams. */
export type SeenListener = Pick<SeenSubscription, "name" | "narrowed">;

export interface SeenSchedule {
  job_name: string;
  /** ISO 8601; undefined while it is not known. */
  next_at: string | undefined;
  /** The last firings, newest first: the job that was started, or in words why none was. */
  last: { text: string; isJob: boolean }[];
  /** Whether a tool's definition has it: it would be made again. */
  isOfDefinition: boolean;
}

export interface Seen {
  subscriptions: SeenSubscription[];
  listeners: SeenListener[];
  /** The next to fire come first, a bounded number of them; none where it is asked of one job. */
  schedules: SeenSchedule[];
}

/** The most listeners that an object remembers. */
const MOST = 50;

/** Who has lately polled or streamed events. In memory: a client that still listens asks again. */
export class Listeners {
  readonly #until = new Map<string, number>();

  note({ name, narrowed }: SeenListener, until: number): void {
    const key = JSON.stringify({ name, narrowed });
    this.#until.delete(key);
    this.#until.set(key, until);
    const [oldest] = this.#until.keys();
    if (this.#until.size > MOST && oldest !== undefined) this.#until.delete(oldest);
  }

  list(now: number): SeenListener[] {
    return [...this.#until].flatMap(([key, until]) => (until > now ? [JSON.parse(key) as SeenListener] : []));
  }
}
