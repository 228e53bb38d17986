/** Appends the records of one execution: decides their order, the batches, and which awaited outcomes each lists. */

import type { Log } from "../author/context.ts";
import { type StoredError, toStored } from "../author/values.ts";
import { journalEntryId } from "../resonate/ids.ts";
import type { Wakeup } from "./clock.ts";
import type { Lease, When } from "./job-lease.ts";
import { LeaseLost } from "./job-lease.ts";
import { type Journal, type JournalEntry, type JournalRecord, maxUnderWay } from "./journal.ts";
import type { Command } from "./replay/commands/commands.ts";
import type { Replay } from "./replay/replay.ts";
import { RecordRefused } from "./step-feature.ts";

/** The most awaited outcomes that one record lists. */
const MAX_NAMED_PATHS = 100;

interface QueuedEntry {
  command: Command;
  event: JournalEntry;
  when: When;
  recorded: PromiseWithResolvers<void>;
}

export class JournalWriter {
  readonly #journal: Journal;
  readonly #lease: Lease;
  readonly #wakeup: Wakeup;
  readonly #log: Log;
  #queue: QueuedEntry[] = [];
  /** The commands whose awaited outcomes reached the function and are not listed in a record yet. */
  reachedPaths: string[] = [];
  /** The first window whose commands depend on the order of these outcomes, which could differ in a replay. */
  #uncertainFrom = Number.POSITIVE_INFINITY;

  constructor(journal: Journal, lease: Lease, wakeup: Wakeup, log: Log) {
    this.#journal = journal;
    this.#lease = lease;
    this.#wakeup = wakeup;
    this.#log = log;
  }

  get hasQueuedEntries(): boolean {
    return this.#queue.length > 0;
  }

  /** Queues a record. Records are written in the order in which they are posted; resolves when this one is written. */
  post(command: Command, event: JournalEntry, when: When = "resolved"): Promise<void> {
    if (command.isOver) return Promise.resolve();
    const recorded = Promise.withResolvers<void>();
    recorded.promise.catch(() => {});
    this.#queue.push({ command, event, when, recorded });
    this.#wakeup.wake();
    return recorded.promise;
  }

  /** Writes as many posted records as may be under way at once, and hands them over in order. */
  async flush(replay: Replay): Promise<void> {
    const openEntries = this.#queue.filter(({ command }) => !command.isOver);
    // Work that waits for its record notices that it has been given up, and frees its place.
    for (const { command, recorded } of this.#queue) if (command.isOver) recorded.resolve();
    const batch = openEntries.slice(0, maxUnderWay(this.#journal.events.length));
    this.#queue = openEntries.slice(batch.length);
    if (batch.length === 0) return;
    const records = await this.#append(batch).catch((error) => {
      this.#queue.unshift(...batch);
      throw error;
    });
    for (const [i, { command, recorded }] of batch.entries()) {
      await replay.deliver(command, records[i] as JournalRecord);
      recorded.resolve();
    }
  }

  /** Writes one record at once. @throws {LeaseLost} */
  async record(event: JournalEntry): Promise<JournalRecord> {
    const [record] = await this.#append([{ event, when: "resolved" }]);
    return record as JournalRecord;
  }

  /**
   * Writes records at once. A crash may lose any of them, so each lists all awaited outcomes. Instead of an outcome or a
   * question that is refused, an error is recorded, so that the function hears of it.
   *
   * @throws {LeaseLost}
   */
  async #append(batch: readonly Pick<QueuedEntry, "event" | "when">[]): Promise<JournalRecord[]> {
    const first = this.#journal.last + 1;
    const after = this.reachedPaths.length > 0 && { after: this.reachedPaths };
    const promises = await Promise.all(
      batch.map(({ event, when }, i) => {
        const id = journalEntryId(this.#lease.run, first + i);
        const more = { ...after, ...(i > 0 && { with: first }), v: this.#lease.version };
        const outsideBytes = "outsideBytes" in event ? event.outsideBytes : undefined;
        return this.#lease.create(id, { ...event, ...more }, when, outsideBytes).catch((error) => {
          const failure = error instanceof RecordRefused && failureEntry(event, toStored(error));
          if (!failure) throw error;
          this.#log.warn("record refused", { call: event.op, reason: failure.error.message });
          return this.#lease.create(id, { ...failure, ...more }, "resolved");
        });
      }),
    );
    this.reachedPaths = [];
    this.#uncertainFrom = Number.POSITIVE_INFINITY;
    return promises.map((promise, i) => {
      const record = this.#journal.add(promise, first + i);
      const { op, kind } = (batch[i] as QueuedEntry).event;
      if (record?.event.op !== op || record.event.kind !== kind) {
        throw new LeaseLost("another worker writes the records of this job", { reason: "taken" });
      }
      return record;
    });
  }

  /** Notes an outcome that reached the function; from the window `unsure` on, another could have come first. */
  addReachedPath(path: string, uncertainFrom = Number.POSITIVE_INFINITY): void {
    this.reachedPaths.push(path);
    this.#uncertainFrom = Math.min(this.#uncertainFrom, uncertainFrom);
  }

  /**
   * Records the awaited outcomes that reached the function before work that depends on them begins. After a crash another
   * outcome could come first, and the same step would begin with other arguments under one idempotency key.
   *
   * @param depends whether work that is about to begin was issued in this window or later
   */
  async pin(depends: (window: number) => boolean): Promise<void> {
    const op = this.reachedPaths.at(-1);
    if (op === undefined) return;
    // Each record of a batch repeats the list, so its length has a limit.
    if (this.reachedPaths.length < MAX_NAMED_PATHS && !depends(this.#uncertainFrom)) return;
    await this.record({ kind: "reached", op });
  }

  /** Drops the posted records: the execution is over. If the job was cancelled, outcomes are left to its clean-up. */
  abandon(): void {
    for (const { command, event, recorded } of this.#queue) {
      const isOutcome = event.kind !== "begin" && event.kind !== "retry";
      if (command.isCut) this.leave(command, isOutcome ? event : undefined);
      recorded.reject(new LeaseLost("the execution is over", { reason: "ended" }));
    }
  }

  /** Leaves the outcome of work that outlasted the execution to the clean-up; without `event`, the work was cut off. */
  leave({ path }: Command, event?: JournalEntry): void {
    this.#lease.leave?.(path, event).catch(() => {});
  }
}

/** The entry by which a call fails whose own entry cannot be stored. */
function failureEntry({ kind, op }: JournalEntry, error: StoredError) {
  const isCall = kind === "step" || kind === "start" || kind === "until" || kind === "emit" || kind === "ask";
  return isCall ? { kind, op, error } : undefined;
}
