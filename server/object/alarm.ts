import type { ObjectSql, ObjectStorage } from "../../core/resonate/object-storage.ts";
import { type SweepPosition, sweep } from "../engine/retention.ts";
import type { Store } from "../engine/store.ts";
import type { Resonate } from "../resonate.ts";
import type { FileSweep } from "./file-sweep.ts";
import { logError } from "./log.ts";
import type { Notes } from "./tables.ts";

/** How many ticks one alarm handles: its CPU time is limited, and requests are answered between alarms. */
const TICKS = 20;
/** How long to wait after a failed write, in milliseconds. */
const FAILURE_PAUSE = 1_000;
/** The bounds of the interval between two sweeps, which is a tenth of the retention, in milliseconds. */
const LONGEST_SWEEP_INTERVAL = 86_400_000;
const SHORTEST_SWEEP_INTERVAL = 200;

interface AlarmParts {
  storage: ObjectStorage;
  sql: ObjectSql;
  store: Store;
  notes: Notes;
  resonate: Resonate;
  /** How long ended jobs are kept, in milliseconds; undefined means forever. */
  keep: number | undefined;
  files: FileSweep;
  /** The end of the server's pause, in milliseconds since the epoch. */
  pausedUntil: () => number;
}

/** The object's alarm, which is set to the next time-out and handles everything that is due. */
export class Alarm {
  readonly #parts: AlarmParts;
  /** The time that the alarm is set to; undefined when it is not set. */
  #time: number | undefined;
  /** The time of the last alarm. The platform ignores an alarm that is set to the same time while that one is handled. */
  #fired = 0;
  #isHandling = false;
  /** The end of the pause after the last alarm, if it could not write. */
  #pausedTo = 0;
  #sweepAt: number;
  #sweptTo: SweepPosition | undefined;

  constructor(parts: AlarmParts) {
    this.#parts = parts;
    const { notes, keep } = parts;
    const noted = Number(notes.get("sweep") ?? 0);
    // The noted time may be too late if the retention was longer when it was noted.
    this.#sweepAt = keep === undefined ? noted : Math.min(noted, Date.now() + sweepInterval(keep));
  }

  /** Takes over the alarm that is set, or sets it again: the platform drops an alarm that has failed six times. */
  async restore(): Promise<void> {
    this.#time = (await this.#parts.storage.getAlarm()) ?? undefined;
    this.set();
  }

  /** Handles everything that is due. Never rejects, and always sets the next alarm. */
  async handle(): Promise<void> {
    this.#fired = Math.max(this.#time ?? 0, Date.now());
    this.#time = undefined;
    if (Date.now() < this.#parts.pausedUntil()) return this.set();
    // Not awaited: time-outs must not wait for the file store.
    void this.#parts.files.run().then(() => this.set());
    this.#isHandling = true;
    let isWritable = true;
    try {
      for (let n = 0; n < TICKS; n++) {
        const found = this.#parts.resonate.tick();
        isWritable = found !== undefined;
        if (!found) break;
        await new Promise((resolve) => setTimeout(resolve));
      }
      if (isWritable) this.#sweep(Date.now());
    } catch (error) {
      isWritable = false;
      logError("alarm failed", { err: error });
    } finally {
      this.#isHandling = false;
      this.#pausedTo = isWritable ? 0 : Date.now() + FAILURE_PAUSE;
      this.set();
    }
  }

  /** Sets the alarm to the next time-out. */
  set(): void {
    if (this.#isHandling) return;
    const { resonate, storage, sql, pausedUntil, files } = this.#parts;
    const due = Math.min(resonate.due ?? Number.POSITIVE_INFINITY, this.#nextSweep(), files.due);
    const time = Math.max(due, this.#pausedTo, pausedUntil(), this.#fired + 1);
    if (time === Number.POSITIVE_INFINITY) return;
    // An alarm that is too early does no harm: it finds nothing due and sets the next one.
    if (this.#time !== undefined && this.#time <= time) return;
    this.#time = time;
    sql.rows.written += 1;
    void storage.setAlarm(time);
  }

  /** The time of the next sweep; infinity for an object without jobs, which needs no alarm. */
  #nextSweep(): number {
    const { keep, store } = this.#parts;
    if (keep === undefined) return Number.POSITIVE_INFINITY;
    if (this.#sweepAt > 0) return this.#sweepAt;
    if (store.ids("promises", "LIMIT 1").length === 0) return Number.POSITIVE_INFINITY;
    return Date.now() + sweepInterval(keep);
  }

  #sweep(now: number): void {
    const { keep, store, notes } = this.#parts;
    if (keep === undefined || now < this.#sweepAt) return;
    store.transaction(() => {
      this.#sweptTo = this.#sweepAt === 0 ? undefined : sweep(store, now, keep, this.#sweptTo);
      if (this.#sweptTo) return;
      this.#sweepAt = now + sweepInterval(keep);
      notes.set("sweep", String(this.#sweepAt));
    });
  }
}

function sweepInterval(keep: number): number {
  return Math.min(Math.max(keep / 10, SHORTEST_SWEEP_INTERVAL), LONGEST_SWEEP_INTERVAL);
}
