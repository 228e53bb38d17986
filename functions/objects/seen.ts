/** What a caller's object shows its caller: who receives events of its jobs, and what is scheduled. */
import type { Narrowed } from "../../features/events/event-log.ts";

/** A subscription by web hook. Only the host of the receiver's address is shown. Times are ISO 8601. */
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

/** Events that a client polls or streams. */
export type SeenListener = Pick<SeenSubscription, "name" | "narrowed">;

export interface SeenSchedule {
  job_name: string;
  /** ISO 8601; undefined while it is not known. */
  next_at: string | undefined;
  /** The last firings, newest first. `text`: the name of the started job, or why none was started. */
  last: { text: string; isJob: boolean }[];
  /** Whether it is part of a tool's definition, which would make it again. */
  isOfDefinition: boolean;
}

export interface Seen {
  subscriptions: SeenSubscription[];
  listeners: SeenListener[];
  /** A bounded number, the next to fire first; empty where the call names one job. */
  schedules: SeenSchedule[];
}

/** The most listeners that an object remembers. */
const MOST = 50;

/** Who has lately polled or streamed events. Only in memory, as a client that still listens soon asks again. */
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
