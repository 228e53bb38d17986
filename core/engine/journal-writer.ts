/** Appends the records of one execution: in which order, which at once, and what each says that it follows. */
import { journalEntryId } from "../store/ids.ts";
import { type Journal, type JournalEntry, type JournalRecord, maxUnderWay } from "./journal.ts";
import type { Command } from "./replay/commands/command.ts";
import type { Wakeup } from "./replay/commands/wakeup.ts";
import type { Replay } from "./replay/replay.ts";
import { type Lease, LeaseLost, type When } from "./runtime.ts";

/** How many settled promises one record lists at most. */
const MOST_HEARD = 100;

interface Posted {
  command: Command;
  event: JournalEntry;
  when: When;
  written: PromiseWithResolvers<void>;
}

export class JournalWriter {
  readonly #journal: Journal;
  readonly #lease: Lease;
  readonly #wakeup: Wakeup;
  #posted: Posted[] = [];
  /** The commands whose awaited promises reached the function since the last record. */
  #heard: string[] = [];
  /** The first window whose commands know of such a promise that a replay could hear of later. */
  #unsureSince = Number.POSITIVE_INFINITY;

  constructor(journal: Journal, lease: Lease, wakeup: Wakeup) {
    this.#journal = journal;
    this.#lease = lease;
    this.#wakeup = wakeup;
  }

  get hasPosted(): boolean {
    return this.#posted.length > 0;
  }

  /** The commands whose awaited promises reached the function, and which no record lists yet. */
  get heard(): readonly string[] {
    return this.#heard;
  }

  /** Records are written in the order in which they are posted; resolves when this one is there. */
  post(command: Command, event: JournalEntry, when: When = "resolved"): Promise<void> {
    if (command.isOver) return Promise.resolve();
    const written = Promise.withResolvers<void>();
    written.promise.catch(() => {});
    this.#posted.push({ command, event, when, written });
    this.#wakeup.wake();
    return written.promise;
  }

  /** Writes what was posted, as much as may be under way at once, and hands the records over in order. */
  async flush(replay: Pick<Replay, "hand">): Promise<void> {
    const posted = this.#posted.filter(({ command }) => !command.isOver);
    const batch = posted.slice(0, maxUnderWay(this.#journal.events.length));
    this.#posted = posted.slice(batch.length);
    if (batch.length === 0) return;
    const records = await this.append(batch).catch((error) => {
      this.#posted.unshift(...batch);
      throw error;
    });
    for (const [i, { command, written }] of batch.entries()) {
      await replay.hand(command, records[i] as JournalRecord);
      written.resolve();
    }
  }

  /** Appends records at once. A crash may lose any of them, so each lists all that it follows. @throws {LeaseLost} */
  async append(batch: readonly Pick<Posted, "event" | "when">[]): Promise<JournalRecord[]> {
    const first = this.#journal.last + 1;
    const after = this.#heard.length > 0 && { after: this.#heard };
    const promises = await Promise.all(
      batch.map(({ event, when }, i) => {
        const whole = { ...event, ...after, ...(i > 0 && { with: first }), v: this.#lease.version };
        return this.#lease.create(journalEntryId(this.#lease.run, first + i), whole, when);
      }),
    );
    this.#heard = [];
    this.#unsureSince = Number.POSITIVE_INFINITY;
    return promises.map((promise, i) => {
      const record = this.#journal.add(promise, first + i);
      const { op, kind } = (batch[i] as Posted).event;
      if (record?.event.op !== op || record.event.kind !== kind) {
        throw new LeaseLost("another worker writes the records of this job");
      }
      return record;
    });
  }

  /** An awaited promise reached the function; from the window `unsure` on, another outcome could have come first. */
  reached(path: string, unsure = Number.POSITIVE_INFINITY): void {
    this.#heard.push(path);
    this.#unsureSince = Math.min(this.#unsureSince, unsure);
  }

  /**
   * Records what the function has heard before work begins that depends on it. After a crash another promise could be
   * known first, and the same step would begin with other arguments under one idempotency key.
   *
   * @param depends whether work that is about to begin was issued in this window or later
   */
  async pin(depends: (window: number) => boolean): Promise<void> {
    const op = this.#heard.at(-1);
    if (op === undefined) return;
    // Each record of a batch repeats the list: it must not grow without bounds.
    if (this.#heard.length < MOST_HEARD && !depends(this.#unsureSince)) return;
    await this.append([{ event: { kind: "heard", op }, when: "resolved" }]);
  }

  /** The execution is over: what was posted is not written any more, but left to the clean-up, if the job was cancelled. */
  abandon(): void {
    for (const { command, event, written } of this.#posted) {
      const isOutcome = event.kind !== "begin" && event.kind !== "retry";
      if (command.isCut) this.leave(command, isOutcome ? event : undefined);
      written.reject(new LeaseLost("the execution is over"));
    }
  }

  /** What came of work that was under way when the execution was over; nothing where it was cut off. */
  leave({ path }: Command, event?: JournalEntry): void {
    this.#lease.leave?.(path, event).catch(() => {});
  }
}
