import type { ObjectSql, ObjectStorage } from "../../core/resonate/index.ts";
import type { Resonate } from "../engine/resonate.ts";
import { type SweepPosition, sweep, sweepInterval } from "../engine/retention.ts";
import type { Store } from "../engine/store.ts";
import { logError } from "./log.ts";
import type { Notes } from "./tables.ts";

/** How many ticks one alarm handles: its CPU time is limited, and requests are answered between alarms. */
const MAX_TICKS_PER_ALARM = 20;
/** How long to wait after a failed write. */
const FAILURE_PAUSE_MS = 1_000;
const MAX_SWEEP_INTERVAL_MS = 86_400_000;

/** Removes what the account keeps beside this object for jobs that are gone, a part at a time. */
interface Sweep {
  /** The time of the next part, in milliseconds since the epoch. */
  readonly nextSweepAt: number;
  /** Does one part if it is due. Never rejects. */
  run(): Promise<void>;
}

interface AlarmParts {
  storage: ObjectStorage;
  sql: ObjectSql;
  store: Store;
  notes: Notes;
  resonate: Resonate;
  /** How long finished jobs are kept, in milliseconds; undefined means forever. */
  retention: number | undefined;
  files: Sweep;
  /** The end of the server's pause, in milliseconds since the epoch. */
  pausedUntil: () => number;
}

/** The object's alarm, which is set to the next time-out and handles everything that is due. */
export class Alarm {
  readonly #parts: AlarmParts;
  /** The time that the alarm is set to; undefined when it is not set. */
  #time: number | undefined;
  /** The time of the last alarm. The platform ignores an alarm that is set to the same time while that one is handled. */
  #lastAlarmAt = 0;
  #isHandling = false;
  /** The end of the pause after the last alarm, if it could not write. */
  #failurePauseEnd = 0;
  #nextSweepAt: number;
  #sweepPosition: SweepPosition | undefined;

  constructor(parts: AlarmParts) {
    this.#parts = parts;
    const { notes, retention } = parts;
    const notedTime = Number(notes.get("sweep") ?? 0);
    // The noted time may be too late if the retention was longer when it was noted.
    this.#nextSweepAt = retention === undefined ? notedTime : Math.min(notedTime, Date.now() + intervalFor(retention));
  }

  /** Takes over the alarm that is set, or sets it again: the platform drops an alarm that has failed six times. */
  async restore(): Promise<void> {
    this.#time = (await this.#parts.storage.getAlarm()) ?? undefined;
    this.set();
  }

  /** Handles everything that is due. Never rejects, and always sets the next alarm. */
  async handle(): Promise<void> {
    this.#lastAlarmAt = Math.max(this.#time ?? 0, Date.now());
    this.#time = undefined;
    if (Date.now() < this.#parts.pausedUntil()) return this.set();
    // Not awaited: time-outs must not wait for the file store.
    void this.#parts.files.run().then(() => this.set());
    this.#isHandling = true;
    let isWritable = true;
    try {
      for (let n = 0; n < MAX_TICKS_PER_ALARM; n++) {
        const wasDue = this.#parts.resonate.tick();
        isWritable = wasDue !== undefined;
        if (!wasDue) break;
        await new Promise((resolve) => setTimeout(resolve));
      }
      if (isWritable) this.#sweep(Date.now());
    } catch (error) {
      isWritable = false;
      logError("alarm failed", { err: error });
    } finally {
      this.#isHandling = false;
      this.#failurePauseEnd = isWritable ? 0 : Date.now() + FAILURE_PAUSE_MS;
      this.set();
    }
  }

  /** Sets the alarm to the next time-out. */
  set(): void {
    if (this.#isHandling) return;
    const { resonate, storage, sql, pausedUntil, files } = this.#parts;
    const due = Math.min(resonate.nextTimeout ?? Number.POSITIVE_INFINITY, this.#sweepTime(), files.nextSweepAt);
    const time = Math.max(due, this.#failurePauseEnd, pausedUntil(), this.#lastAlarmAt + 1);
    if (time === Number.POSITIVE_INFINITY) return;
    // An alarm that is too early does no harm: it finds nothing due and sets the next one.
    if (this.#time !== undefined && this.#time <= time) return;
    this.#time = time;
    sql.rows.written += 1;
    void storage.setAlarm(time);
  }

  /** The time of the next sweep; infinity for an object without jobs, which needs no alarm. */
  #sweepTime(): number {
    const { retention, store } = this.#parts;
    if (retention === undefined) return Number.POSITIVE_INFINITY;
    if (this.#nextSweepAt > 0) return this.#nextSweepAt;
    if (store.ids("promises", "LIMIT 1").length === 0) return Number.POSITIVE_INFINITY;
    return Date.now() + intervalFor(retention);
  }

  #sweep(now: number): void {
    const { retention, store, notes } = this.#parts;
    if (retention === undefined || now < this.#nextSweepAt) return;
    store.transaction(() => {
      this.#sweepPosition = this.#nextSweepAt === 0 ? undefined : sweep(store, now, retention, this.#sweepPosition);
      if (this.#sweepPosition) return;
      this.#nextSweepAt = now + intervalFor(retention);
      notes.set("sweep", String(this.#nextSweepAt));
    });
  }
}

const intervalFor = (retention: number): number => sweepInterval(retention, MAX_SWEEP_INTERVAL_MS);
