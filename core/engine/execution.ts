/**
 * Runs a durable function, from its records as far as they go and then for the first time: one pass, which ends when the
 * job has ended or everything in it waits.
 *
 * The function is moved on in *windows*: one outcome is handed to it, and it runs as far as it can without waiting, in
 * microtasks alone. What it calls outside of a window it calls from inside a step, or after it has awaited something of
 * its own: that is refused. Outcomes are handed over in the order of their records, and a record is written before its
 * outcome is handed over: a replay is the same sequence of windows, whatever was fast or slow.
 */

import { type Context, type Log, type Metrics, RuleBroken } from "../definitions/context.ts";
import type { PromiseRecord } from "../store/protocol.ts";
import { Awaitables } from "./awaitables.ts";
import { Blocked, mismatch, otherWinner } from "./blocked.ts";
import { type Clock, machineClock, whenDrained } from "./clock.ts";
import { type Command, fitsRecord, isWork, settleAwaited, settleRace } from "./command.ts";
import { needsSign, SIGN } from "./crash-loop.ts";
import { AWAITED, changedSince, DIFFERS, type End, endsDiffer, tooLate, WAITS } from "./determinism.ts";
import { ExecutionContext } from "./execution-context.ts";
import { isHeld, nextDue } from "./held.ts";
import type { Journal, JournalEntry, JournalRecord } from "./journal.ts";
import { JournalWriter } from "./journal-writer.ts";
import { type ExecutionEnd, type Lease, LeaseLost, type Runnable, type Runtime, type When } from "./runtime.ts";
import { type ExecutionState, stateOf } from "./state.ts";
import { fromStored } from "./values.ts";
import { Wakeup } from "./wakeup.ts";

export { type ExecutionEnd, type Lease, LeaseLost, type Runnable, type Runtime, type When } from "./runtime.ts";

/** How long news of what has settled may take to arrive before the server is asked, in milliseconds. */
const TIME_FOR_NEWS = 50;

/** Made once: a new one takes its stack each time. */
const OVER = new DOMException("the pass is over", "AbortError");

export class Execution {
  readonly lease: Lease;
  readonly around: Runtime;
  readonly clock: Clock;
  /** The attempts that are under way: their signals are aborted with that of the pass. */
  readonly attempts = new Set<AbortController>();
  /** The function's own: what it says or counts again while it is replayed is not heard. */
  readonly log: Log;
  readonly metrics: Metrics;
  /** How many times the function has been moved on, and by the outcome of which call the last time. */
  window = 0;
  cause: Command | undefined;
  /** Whether the function is being moved on. */
  isOpen = false;
  readonly #fn: Runnable;
  readonly #args: unknown;
  readonly #history: Journal;
  readonly #ops = new Map<string, Command>();
  /** Those whose outcome has not reached the function, in the order in which they were called. */
  readonly #unended = new Set<Command>();
  /** Of those, what is not begun, runs, or waits for its next attempt. */
  readonly #unbegun = new Set<Command>();
  readonly #outside: Awaitables;
  readonly #root: ExecutionContext;
  readonly #over = new AbortController();
  #isReplaying: boolean;
  readonly #isFirst: boolean;
  /** Up to which record the function was run again and came to the same. */
  #verified = 0;
  #broken: RuleBroken | undefined;
  #end: End;
  /** What made the pass impossible. */
  #fault: { error: unknown } | undefined;
  /** What is to be done when the window is closed. */
  #afterwards: (() => void)[] = [];
  #progress: ExecutionState["progress"];
  readonly #waking: Wakeup;
  readonly #records: JournalWriter;

  constructor(fn: Runnable, args: unknown, history: Journal, lease: Lease, around: Runtime) {
    this.#fn = fn;
    this.#args = args;
    this.#history = history;
    this.lease = lease;
    this.around = around;
    this.clock = around.clock ?? machineClock;
    this.#waking = new Wakeup(this.clock);
    this.#records = new JournalWriter(history, lease);
    this.#isReplaying = history.events.length > 0;
    this.#isFirst = !this.#isReplaying;
    const firstTime = () => !this.#isReplaying;
    this.log = heardIf(firstTime, around.log);
    this.metrics = heardIf(firstTime, around.metrics);
    this.#outside = new Awaitables(this, history);
    this.#root = new ExecutionContext(this, undefined, "");
  }

  /** Aborted when the pass is over, or is to be. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** The calls whose work runs. */
  get running(): Command[] {
    return [...this.#unended].filter((op) => op.isRunning);
  }

  /** Runs the pass. @throws {LeaseLost} */
  async run(): Promise<ExecutionEnd> {
    const { signal } = this.around;
    const callOff = () => {
      this.#abort(signal.reason);
      this.#wake();
    };
    this.lease.onNews = (promise) => {
      this.#outside.heard(promise);
      this.#wake();
    };
    signal.addEventListener("abort", callOff, { once: true });
    try {
      if (signal.aborted) callOff();
      await this.#start();
      await this.#replay();
      this.#isReplaying = false;
      return await this.#live();
    } catch (error) {
      if (error instanceof Blocked) return { kind: "blocked", reason: error.message };
      throw error;
    } finally {
      this.#root.abandon();
      this.#abort(OVER);
      this.#records.abandon();
      signal.removeEventListener("abort", callOff);
      this.lease.onNews = () => {};
    }
  }

  #abort(reason: unknown): void {
    this.#over.abort(reason);
    for (const attempt of this.attempts) attempt.abort(reason);
  }

  async #start(): Promise<void> {
    // A function may change what it was handed.
    const args = structuredClone(this.#args) as never;
    const run = async () => this.#fn(this.#root as Context as Context<never>, args);
    await this.#window(() => {
      run().then(
        (value) => this.#ended({ value }),
        (error) => this.#ended({ error }),
      );
    });
  }

  // --- for contexts and their work ----------------------------------------------------------------------------------

  called(op: Command): void {
    this.#ops.set(op.path, op);
    this.#unended.add(op);
    this.#unbegun.add(op);
  }

  /** Its outcome has reached the function, or is of no use any more. */
  closed(op: Command): void {
    for (const set of [this.#unended, this.#unbegun, this.#outside]) set.delete(op);
  }

  /** Does what must not find the window open. */
  afterwards(action: () => void): void {
    if (this.isOpen) this.#afterwards.push(action);
    else action();
  }

  /** A rule is broken: the job ends with that, whatever its function makes of it. */
  breaks(words: string): RuleBroken {
    this.#broken ??= new RuleBroken(words);
    this.#wake();
    return this.#broken;
  }

  #refuse(words: string | undefined): void {
    if (words !== undefined) this.breaks(words);
  }

  /** Writes a record, in the order in which they come here; resolves when it is there. */
  record(op: Command, event: JournalEntry, when: When = "resolved"): Promise<void> {
    if (op.isOver) return Promise.resolve();
    const done = this.#records.post(op, event, when);
    this.#wake();
    return done;
  }

  /** What the function says of its progress. */
  tell(progress: NonNullable<ExecutionState["progress"]>): void {
    this.#progress = progress;
    if (!this.#isReplaying) this.#tellState();
  }

  // --- windows ------------------------------------------------------------------------------------------------------

  /** Hands one thing to the function and lets it run until it waits. */
  async #window(hand: () => void, cause?: Command): Promise<void> {
    // What runs of steps in microtasks is to be through: it must not find the window open.
    if (!this.#isReplaying) await this.clock.turn();
    this.isOpen = true;
    this.window += 1;
    this.cause = cause;
    hand();
    await whenDrained(() => {
      this.isOpen = false;
    });
    for (const action of this.#afterwards.splice(0)) action();
  }

  async #handOver(op: Command, hand: () => void): Promise<void> {
    if (op.isOver) return;
    await this.#window(() => {
      op.scope.close(op);
      hand();
    }, op);
  }

  async #handOverOutside(op: Command, settled: PromiseRecord): Promise<void> {
    await this.#handOver(op, () => settleAwaited(op, settled));
  }

  #ended(end: NonNullable<End>): void {
    if (!this.isOpen) this.breaks(`the function ended ${AWAITED}`);
    this.#end ??= end;
    this.#wake();
  }

  // --- what is recorded ---------------------------------------------------------------------------------------------

  async #replay(): Promise<void> {
    const { events } = this.#history;
    const last = events.at(-1);
    let handed = 0;
    const refuse = () => {
      // Code has changed that kept a rule when records were written after this, or they would not have been. But those
      // that were written at once with it may be there.
      if (this.#broken && last && (last.event.with ?? last.n) > handed) throw new Blocked(this.#broken.message);
    };
    refuse();
    for (const recorded of events) {
      // All at once, not each when its turn comes: there may be hundreds.
      if (recorded.event.after) await this.#outside.lookAround();
      for (const path of recorded.event.after ?? []) {
        await this.#replayOutside(path, recorded.event);
        refuse();
      }
      if (recorded.event.kind === "heard") continue;
      const op = this.#ops.get(recorded.event.op);
      if (!op || !fitsRecord(op.kind, recorded.event)) throw this.#mismatch(recorded.event, op);
      await this.#apply(op, recorded);
      handed = recorded.n;
      refuse();
    }
  }

  async #replayOutside(path: string, event: JournalEntry): Promise<void> {
    const op = this.#ops.get(path);
    if (op) this.#outside.locate(op);
    if (!op?.awaited) throw this.#mismatch(event, op);
    if (op.isOver) return;
    if (!op.awaited.settled) await this.#outside.look(op, false);
    if (!op.awaited.settled) await this.#outside.look(op, true);
    const { settled } = op.awaited;
    if (!settled) throw new Blocked(`${op.kind} "${op.path}" had ended when its outcome was used, and has not now`);
    await this.#handOverOutside(op, settled);
  }

  async #apply(op: Command, recorded: JournalRecord): Promise<void> {
    const { n, event, promise } = recorded;
    switch (event.kind) {
      case "heard":
        return;
      case "sleep":
        this.#outside.waitsFor(op, promise);
        return;
      case "ask":
        if (event.promise === undefined) this.#outside.waitsFor(op, promise);
        else this.#outside.waitsElsewhere(op, event.promise);
        return;
      case "begin":
        op.begun = { n, at: event.at };
        return;
      case "retry":
        op.attempts = event.attempt;
        op.failingSince = event.since;
        op.lastError = event.error.message;
        op.pause = { id: promise.id, due: promise.timeoutAt };
        op.isRunning = false;
        return;
      case "race":
        if (!op.isOver && op.winner?.key !== event.winner) throw otherWinner(op, event.winner);
        return this.#handOver(op, () => settleRace(op));
      default:
        return this.#handOver(op, () =>
          event.error ? op.reject(fromStored(event.error)) : op.resolve(recorded.value),
        );
    }
  }

  #mismatch(event: JournalEntry, op: Command | undefined): Blocked {
    const known = new Set(this.#history.events.map((each) => each.event.op));
    const instead = op && !op.isOver ? [op] : [...this.#unended].filter(({ path }) => !known.has(path));
    return mismatch(event, instead, this.#end !== undefined);
  }

  // --- for the first time -------------------------------------------------------------------------------------------

  async #live(): Promise<ExecutionEnd> {
    for (;;) {
      this.#waking.looks();
      if (this.#fault) throw this.#fault.error;
      if (this.#broken) return { kind: "failed", error: this.#broken };
      if (this.around.signal.aborted) throw new LeaseLost("the job is no longer run here");
      this.#begin((op) => !isWork(op));
      if (this.#records.arePosted) {
        await this.#write();
        continue;
      }
      const hasSeen = (window: number) => (op: Command) => isWork(op) && !op.isRunning && op.window >= window;
      await this.#records.pin((window) => some(this.#unbegun, hasSeen(window)));
      this.#begin(isWork);
      const end = this.#end;
      if (end && "error" in end) {
        await this.#verify();
        return { kind: "failed", error: this.#broken ?? end.error };
      }
      if (!end && (await this.#handOverNext())) continue;
      const needed = [...this.#unended].filter((op) => !end || isWork(op));
      if (end && needed.length === 0) {
        this.#refuse(changedSince(end.value));
        await this.#verify();
        if (this.#broken) continue;
        return { kind: "complete", value: end.value };
      }
      this.#tellState();
      if (needed.some((op) => isHeld(op, this.clock.now()))) {
        await this.#waking.something(nextDue(needed, this.clock.now()));
        continue;
      }
      const waiting = needed.flatMap(({ awaited: external, pause }) => (external ?? pause)?.id ?? []);
      if (waiting.length === 0 && !this.#waking.isAwake) this.breaks(`the function ${WAITS}`);
      this.#refuse(tooLate(needed, this.around.deadline));
      if (this.#waking.isAwake) continue;
      if (this.#isFirst && this.#verified < this.#history.last) {
        await this.#verify();
        continue;
      }
      if (needsSign(this.#history, this.lease.version)) await this.#records.add([{ event: SIGN, when: "resolved" }]);
      await this.around.beforeSleep?.();
      if (await this.lease.suspend(waiting)) return { kind: "asleep" };
      await this.#lookFor(needed);
    }
  }

  /**
   * Runs the function again from its records alone, before the job is left or ends for the first time. What has awaited
   * something of its own does not get as far, and what is not in a step and differs shows in what is called or returned.
   */
  async #verify(): Promise<void> {
    this.#verified = this.#history.last;
    const { onState: _, ...around } = this.around;
    const again = new Execution(this.#fn, this.#args, this.#history, this.lease, around);
    const difference = await again.#differenceTo(this);
    if (difference !== undefined) this.breaks(`run again from its records, the function ${difference}. ${DIFFERS}`);
  }

  async #differenceTo(first: Execution): Promise<string | undefined> {
    this.#isReplaying = true;
    try {
      await this.#start();
      await this.#replay();
      for (const path of first.#records.unsaid) await this.#replayOutside(path, { kind: "heard", op: path });
    } catch (error) {
      if (error instanceof Blocked) return `did something else: ${error.message}`;
      throw error;
    } finally {
      this.#root.abandon();
      this.#abort(OVER);
    }
    for (const path of first.#ops.keys()) if (!this.#ops.has(path)) return `did not call "${path}"`;
    for (const path of this.#ops.keys()) if (!first.#ops.has(path)) return `called "${path}", which it had not`;
    return endsDiffer(first.#end, this.#end);
  }

  /** Begins what was called, and what has waited long enough. */
  #begin(isMeant: (op: Command) => boolean): void {
    const now = this.clock.now();
    for (const op of this.#unbegun) {
      this.#outside.locate(op);
      if (op.awaited) this.#unbegun.delete(op);
      if (op.isRunning || op.awaited || !op.perform || (op.pause && op.pause.due > now) || !isMeant(op)) continue;
      delete op.pause;
      op.isRunning = true;
      op.runningSince = now;
      op.perform().then(
        () => this.#wake(),
        (error) => {
          this.#fault ??= { error };
          this.#wake();
        },
      );
    }
  }

  /** Writes what is to be recorded, several at once, and hands the outcomes over in order. */
  async #write(): Promise<void> {
    const batch = this.#records.take();
    if (batch.length === 0) return;
    const recorded = await this.#records.add(batch);
    for (const [i, { op, done }] of batch.entries()) {
      await this.#apply(op, recorded[i] as JournalRecord);
      if (op.awaited) op.isRunning = false;
      done.resolve();
    }
  }

  /** Hands over what has settled outside, one at a time, the earliest first. Whether there was anything. */
  async #handOverNext(): Promise<boolean> {
    await this.#outside.lookAround();
    const op = this.#outside.next;
    const settled = op?.awaited?.settled;
    if (!op || !settled) return false;
    const isBeside = (each: Command) => each !== op && each.kind !== "all" && each.kind !== "race";
    this.#records.reached(op.path, some(this.#unended, isBeside) ? this.window + 1 : undefined);
    await this.#handOverOutside(op, settled);
    return true;
  }

  /** Something that was waited for has settled: finds out what. */
  async #lookFor(waiting: readonly Command[]): Promise<void> {
    if (waiting.some(({ awaited: external, kind }) => external && kind !== "sleep")) {
      await this.#waking.something(this.clock.now() + TIME_FOR_NEWS);
      await this.#outside.lookAround();
    }
    if (!this.#outside.next) await this.#outside.find(waiting);
  }

  #wake(): void {
    this.#waking.wake();
  }

  #tellState(): void {
    this.around.onState?.(stateOf([...this.#unended], this.#progress));
  }
}

/** `whole`, of which methods do something only while `isHeard`. */
function heardIf<T extends object>(isHeard: () => boolean, whole: T): T {
  return new Proxy(whole, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== "function") return method;
      return (...args: unknown[]) => (isHeard() ? method.apply(target, args) : undefined);
    },
  });
}

function some<T>(items: Iterable<T>, is: (item: T) => boolean): boolean {
  for (const item of items) if (is(item)) return true;
  return false;
}
