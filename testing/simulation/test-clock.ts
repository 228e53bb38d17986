/** A clock for tests. It stands still while something happens, and jumps to the next timer when nothing happens. */
import { type Clock, machineClock } from "../../core/engine/index.ts";

interface Timer {
  at: number;
  then: () => void;
  /** Whether the clock does not jump to this timer while work is under way. */
  waitsForWork: boolean;
}

/** The clock of one process, which may die. */
export interface ProcessClock extends Clock {
  /** Resolves after `ms` milliseconds of this clock. */
  pause(ms: number): Promise<void>;
  /** Stops the clock for work that waits for something other than its timers, as long as that work makes progress. */
  busy<T>(work: Promise<T>): Promise<T>;
  /** Like `after`, but the clock does not jump to this timer while work is under way, however long the work takes. */
  afterWork(ms: number, then: () => void): void;
  /** Ends the process, so that its timers do not fire. */
  stop(): void;
}

/** How many real milliseconds work may make no progress before the time moves on; the second limit is for open resources. */
const MAX_IDLE_MS = 100;
const MAX_IDLE_WITH_RESOURCES_MS = 2_000;

/** How long nothing may happen while no timer is due, in real milliseconds; the second limit is for work under way. */
const MAX_SILENCE_MS = 10_000;
const MAX_SILENCE_AT_WORK_MS = 120_000;
const NOTHING_HAPPENS = "nothing has happened for long, and nothing is due: a step may never finish";

/** The timers, sockets and processes that are open; none if the platform does not list them. */
const openResources = (): string[] => process.getActiveResourcesInfo?.() ?? [];

/** Work may wait for these even if they were open before it began: a pool keeps its connections. */
const RESOURCES_THAT_ANSWER = /^(TCPSocket|TLS|Process)Wrap$/;

/** For how many real milliseconds the work may make no progress. `openBefore`: how many resources were open before it began. */
function maxIdle(openBefore: number): number {
  const open = openResources();
  const mayAnswer = open.length > openBefore || open.some((name) => RESOURCES_THAT_ANSWER.test(name));
  return mayAnswer ? MAX_IDLE_WITH_RESOURCES_MS : MAX_IDLE_MS;
}

/** The time at which the clock begins, in milliseconds since the epoch. */
export const CLOCK_START = Date.UTC(2026, 0, 1);

export class TestClock implements Clock {
  /** Milliseconds since the epoch. */
  #now = CLOCK_START;
  readonly #timers = new Set<Timer>();
  /** Counts events, to notice when there are none. */
  #events = 0;
  #busy = 0;

  now = (): number => this.#now;

  after = (ms: number, then: () => void, waitsForWork = false): (() => void) => {
    this.#events += 1;
    // oxlint-disable-next-line unicorn/no-thenable -- what happens at that time; nobody awaits a timer
    const timer = { at: this.#now + Math.max(ms, 0), then, waitsForWork };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  };

  turn = (): Promise<void> => {
    this.#events += 1;
    return machineClock.turn();
  };

  /** Resolves after `ms` milliseconds of this clock. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve));
  }

  /** A view of this clock for one of several processes. */
  process(): ProcessClock {
    let isStopped = false;
    let busy = 0;
    const count = (change: number) => {
      if (isStopped) return;
      busy += change;
      this.#busy += change;
      this.#events += 1;
    };
    const after = (ms: number, then: () => void, waitsForWork = false) =>
      this.after(ms, () => !isStopped && then(), waitsForWork);
    return {
      now: this.now,
      turn: this.turn,
      after,
      afterWork: (ms, then) => void after(ms, then, true),
      pause: (ms) => new Promise((resolve) => after(ms, resolve)),
      async busy(work) {
        count(1);
        try {
          return await work;
        } finally {
          count(-1);
        }
      },
      stop() {
        count(-busy);
        isStopped = true;
      },
    };
  }

  #moveTo(moment: number): void {
    this.#now = Math.max(this.#now, moment);
  }

  /** When the next timer is due; undefined if there is none. */
  get next(): number | undefined {
    let next: number | undefined;
    for (const { at, waitsForWork } of this.#timers) {
      if ((next === undefined || at < next) && !(waitsForWork && this.#busy > 0)) next = at;
    }
    return next;
  }

  /** Advances the clock until `work` has settled. Rejects if nothing happens for ten real seconds (120 while a process is busy). */
  async until<T>(work: Promise<T>): Promise<T> {
    let isSettled = false;
    const onSettled = () => {
      isSettled = true;
    };
    work.then(onSettled, onSettled);
    const openBefore = openResources().length;
    for (let idle = 0; ;) {
      const eventsBefore = this.#events;
      await machineClock.turn();
      await machineClock.turn();
      if (isSettled) return work;
      if (this.#events !== eventsBefore) {
        idle = 0;
        continue;
      }
      const next = this.next;
      if (next !== undefined && (this.#busy === 0 || idle >= maxIdle(openBefore))) {
        idle = 0;
        this.#moveTo(next);
        this.#fire();
        continue;
      }
      const startedAt = performance.now();
      await new Promise((resolve) => setTimeout(resolve, 1));
      idle += performance.now() - startedAt;
      if (idle > (this.#busy > 0 ? MAX_SILENCE_AT_WORK_MS : MAX_SILENCE_MS)) throw new Error(NOTHING_HAPPENS);
    }
  }

  /** Fires the earliest of the timers that are due. */
  #fire(): void {
    let first: Timer | undefined;
    for (const timer of this.#timers) if (timer.at < (first?.at ?? this.#now + 1)) first = timer;
    if (!first) return;
    this.#timers.delete(first);
    first.then();
  }
}
