/** The records that a pass writes: in which order, after what, and which of them at once. */

import type { Command } from "./command.ts";
import { eventId, type Journal, type JournalEntry, type JournalRecord, maxUnderWay } from "./journal.ts";
import { type Lease, LeaseLost, type When } from "./runtime.ts";

/** How much that had settled outside one record says at most. */
const MOST_HEARD = 100;

/** What is to be written. */
export interface ToWrite {
  event: JournalEntry;
  when: When;
}

/** Something to write for a call, and who waits for it to be there. */
export interface Posted extends ToWrite {
  op: Command;
  done: PromiseWithResolvers<void>;
}

export class JournalWriter {
  readonly #history: Journal;
  readonly #lease: Lease;
  #posted: Posted[] = [];
  /** What reached the function from outside since the last record. */
  #after: string[] = [];
  /** Since which window the function knows of something outside that no record says and that could come later again. */
  #unsureSince = Number.POSITIVE_INFINITY;

  constructor(history: Journal, lease: Lease) {
    this.#history = history;
    this.#lease = lease;
  }

  /** Whether anything is to be written. */
  get arePosted(): boolean {
    return this.#posted.length > 0;
  }

  /** What reached the function from outside, of which no record says that it had. */
  get unsaid(): readonly string[] {
    return this.#after;
  }

  /** Something to write, in the order in which it comes here; resolves when it is there. */
  post(op: Command, event: JournalEntry, when: When): Promise<void> {
    const done = Promise.withResolvers<void>();
    done.promise.catch(() => {});
    this.#posted.push({ op, event, when, done });
    return done.promise;
  }

  /** Takes so much of it as may be written at once, of the calls whose outcome is still of use. */
  take(): Posted[] {
    const ready = this.#posted.filter(({ op }) => !op.isOver);
    const batch = ready.slice(0, maxUnderWay(this.#history.events.length));
    this.#posted = ready.slice(batch.length);
    return batch;
  }

  /** Adds records, of which any may get lost in a crash: each says all that it comes after. */
  async add(batch: readonly ToWrite[]): Promise<JournalRecord[]> {
    const first = this.#history.last + 1;
    const after = this.#after.length > 0 && { after: this.#after };
    const written = await Promise.all(
      batch.map(({ event, when }, i) => {
        const whole = { ...event, ...after, ...(i > 0 && { with: first }), v: this.#lease.version };
        return this.#lease.create(eventId(this.#lease.id, first + i), whole, when);
      }),
    );
    this.#after = [];
    this.#unsureSince = Number.POSITIVE_INFINITY;
    return written.map((promise, i) => {
      const recorded = this.#history.add(promise, first + i);
      const { op, kind } = (batch[i] as ToWrite).event;
      if (recorded?.event.op !== op || recorded.event.kind !== kind) {
        throw new LeaseLost("another worker writes the records of this job");
      }
      return recorded;
    });
  }

  /** What had settled outside reaches the function; from `unsure` on, a window, it could have come later than something else. */
  reached(path: string, unsure = Number.POSITIVE_INFINITY): void {
    this.#after.push(path);
    this.#unsureSince = Math.min(this.#unsureSince, unsure);
  }

  /**
   * Before work begins that has seen something from outside, a record says that it had: after a crash another thing could
   * be known first, and the same step begin with other arguments under one idempotency key.
   *
   * @param hasSeen whether there is work to begin that was called in a window from this one on
   */
  async pin(hasSeen: (window: number) => boolean): Promise<void> {
    const op = this.#after.at(-1);
    if (op === undefined) return;
    // And so that no record has to say too much: each of a batch says all that it comes after.
    if (this.#after.length < MOST_HEARD && !hasSeen(this.#unsureSince)) return;
    await this.add([{ event: { kind: "heard", op }, when: "resolved" }]);
  }

  /** The pass is over: what is not written is not going to be. */
  abandon(): void {
    for (const { done } of this.#posted) done.reject(new LeaseLost("the pass is over"));
  }
}
