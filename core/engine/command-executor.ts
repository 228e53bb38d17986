/** Takes a function beyond its journal: begins its commands, writes the outcomes, hands them over, and waits. */

import { SECOND } from "../author/context.ts";
import { deadlineId } from "../resonate/ids.ts";
import type { Wakeup } from "./clock.ts";
import { LeaseLost } from "./job-lease.ts";
import type { Journal } from "./journal.ts";
import { unwindingTimeOf } from "./replay/cancellation.ts";
import { type Awaitables, REREAD_AFTER_MS } from "./replay/commands/awaitables.ts";
import { type Command, type Commands, hasEffects, isGroup, type Work } from "./replay/commands/commands.ts";
import type { Spending } from "./replay/commands/spending.ts";
import {
  ADVICE_ON_UNAWAITED_CALLS,
  changedSince,
  tooLate,
  unhandledFailure,
  WAITS_FOR_SOMETHING_ELSE,
} from "./replay/determinism.ts";
import type { Replay } from "./replay/replay.ts";
import type { ExecutionEnd } from "./runtime.ts";
import type { OutputCounts } from "./state.ts";
import { RecordRefused } from "./step-feature.ts";
import { performStep, type StepParts } from "./steps/step.ts";
import { performChecks } from "./steps/until.ts";

/** How long news of a settled promise may take to arrive before the server is asked, in milliseconds. */
const MAX_NEWS_DELAY_MS = 50;

/** A pause up to this long is waited for here; a longer one holds no worker. In milliseconds. */
const MAX_PAUSE_IN_MEMORY_MS = 5 * SECOND;

interface ExecutorParts extends StepParts {
  readonly journal: Journal;
  readonly commands: Commands;
  readonly replay: Replay;
  readonly awaitables: Awaitables;
  readonly spending: Spending | undefined;
  readonly wakeup: Wakeup;
  /** Runs the function again from the journal alone. Resolves with what that shows to be wrong with this pass, in words. */
  verify(): Promise<string | undefined>;
  /** Aborts the signals of the function and of running attempts, because the deadline has come. */
  stop(): void;
  /** Tells the function that its deadline has come, or why the job cannot end before it. */
  expire(reason?: string): Promise<void>;
}

export class CommandExecutor {
  readonly #parts: ExecutorParts;
  readonly #isFirst: boolean;
  /** The number of the last record up to which a second pass of the function was compared. */
  #verifiedUpTo = 0;
  /** The first error of a command's work, after which the execution cannot go on. */
  #fault: { error: unknown } | undefined;

  constructor(parts: ExecutorParts) {
    this.#parts = parts;
    this.#isFirst = parts.journal.events.length === 0;
  }

  /** Goes on until the job has ended, or waits only for events outside of this worker. @throws {LeaseLost} */
  async toEnd(): Promise<ExecutionEnd> {
    const { writer, commands, pass, replay, report, wakeup, clock, runtime } = this.#parts;
    for (;;) {
      wakeup.reset();
      if (this.#fault) throw this.#fault.error;
      if (pass.brokenRule) return { kind: "failed", error: pass.brokenRule };
      if (runtime.signal.aborted) throw goneFrom(runtime.signal);
      if (this.#isDue && clock.now() >= runtime.deadline) {
        await this.#expire();
        continue;
      }
      this.#begin((command) => !hasEffects(command));
      if (writer.hasQueuedEntries) {
        await writer.flush(replay);
        continue;
      }
      if (commands.outputs.size > 0) await this.#writeOutputs();
      if (writer.reachedPaths.length > 0)
        await writer.pin((window) =>
          commands.open.values().some((command) => isNew(command) && command.window >= window),
        );
      this.#begin(hasEffects);
      const { end, next } = pass;
      if (end && "error" in end) {
        if (end.error === pass.interruption?.error) this.#refuse(pass.interruption?.reason);
        await this.#verify();
        return { kind: "failed", error: pass.brokenRule ?? end.error };
      }
      if (!end && (await this.#deliverNext())) continue;
      const required = [...commands.open].filter((command) => !end || hasEffects(command));
      if ((end || next) && required.length === 0) {
        // The platform reports unhandled rejections at the end of a turn.
        await clock.turn();
        if (end && "value" in end) this.#refuse(changedSince(end.value));
        this.#refuseUnawaited();
        await this.#verify();
        if (pass.brokenRule) continue;
        if (pass.unstorable) return { kind: "failed", error: pass.unstorable };
        if (next) return { kind: "continued", args: next.args, outputCounts: this.#outputCounts };
        return { kind: "complete", value: end && "value" in end ? end.value : undefined };
      }
      report.send();
      const now = clock.now();
      if (required.some((command) => holdsWorker(command, now))) await wakeup.wait(this.#nextDue(required, now));
      else if (await this.#suspend(required)) return { kind: "asleep" };
    }
  }

  /** The state that this run hands to the next. */
  get #outputCounts(): OutputCounts {
    const { commands, spending, report } = this.#parts;
    const { emitted, events } = commands;
    return { emitted, events, spent: spending?.all, progress: report.newestProgress };
  }

  /** Whether the function is still to hear of its deadline. */
  get #isDue(): boolean {
    const { pass, runtime } = this.#parts;
    return runtime.cleanupUntil !== undefined && !pass.isInterrupted && !pass.end;
  }

  /** When the next sleep, pause, look or the deadline is due, in milliseconds since the epoch. */
  #nextDue(commands: readonly Command[], now: number): number | undefined {
    const due = commands.flatMap(({ pause, awaitedPromise }) => pause?.due ?? awaitedPromise?.due ?? []);
    const times = due.map((at) => (at > now ? at : now + REREAD_AFTER_MS));
    if (this.#isDue) times.push(this.#parts.runtime.deadline);
    return times.length > 0 ? Math.min(...times) : undefined;
  }

  /** At the deadline, or early for a `reason`: gives work under way a short time to end, and then interrupts the function. */
  async #expire(reason?: string): Promise<void> {
    const { writer, commands, pass, replay, runtime, wakeup, clock } = this.#parts;
    pass.isLate = true;
    this.#parts.stop();
    const { cleanupUntil = 0, deadline } = runtime;
    const end = clock.now() + unwindingTimeOf(cleanupUntil - deadline);
    for (;;) {
      wakeup.reset();
      if (this.#fault || pass.brokenRule || pass.end || runtime.signal.aborted) return;
      await writer.flush(replay);
      const isBusy =
        writer.hasQueuedEntries || commands.open.values().some(({ isRunning, isShielded }) => isRunning && !isShielded);
      if (!isBusy || clock.now() >= end) break;
      await wakeup.wait(end);
    }
    if (!pass.end) await this.#parts.expire(reason);
  }

  /**
   * Writes the outputs of calls that were given up, perhaps before they began. Readers stop at the first missing output, so
   * without these they would never see the later ones.
   */
  async #writeOutputs(): Promise<void> {
    const { commands, journal } = this.#parts;
    const missing = [...commands.outputs].filter(([{ isOver, path }]) => isOver && !journal.outputs.has(path));
    const write = async ([{ path }, output]: (typeof missing)[number]) => {
      await output().catch((error) => {
        if (!(error instanceof RecordRefused)) throw error;
      });
      journal.outputs.add(path);
    };
    await Promise.all(missing.map(write));
  }

  /** Begins the work of new commands, and of those whose pause is over. */
  #begin(isMeant: (command: Command) => boolean): void {
    const { commands, awaitables, clock } = this.#parts;
    const now = clock.now();
    for (const command of commands.open) {
      if (command.isRunning || command.awaitedPromise) continue;
      const { work, pause } = command;
      if (!work) awaitables.locate(command);
      if (!work || (pause && pause.due > now) || !isMeant(command)) continue;
      delete command.pause;
      command.isRunning = true;
      command.runningSince = now;
      void this.#perform(command, work);
    }
  }

  /** Does the work of a command: a record, a check, or an attempt at a step, up to an outcome or to the pause before the next. */
  async #perform(command: Command, work: Work): Promise<void> {
    const { writer, wakeup } = this.#parts;
    try {
      if (work.do === "record") await writer.post(command, work.entry, work.when);
      else if (work.do === "check") await performChecks(this.#parts, command, work);
      else await performStep(this.#parts, command, work);
      // Work that posted its outcome has woken the loop already.
      if (!command.isRunning) wakeup.wake();
    } catch (error) {
      this.#fault ??= { error };
      wakeup.wake();
    }
  }

  /** Delivers the awaited promise that settled first. Resolves with whether there was one. */
  async #deliverNext(): Promise<boolean> {
    const { writer, commands, pass, replay, awaitables, runtime } = this.#parts;
    if (!commands.open.values().some(({ awaitedPromise }) => awaitedPromise)) return false;
    await awaitables.readDue();
    const { next } = awaitables;
    const settled = next?.awaitedPromise?.settlement;
    if (!next || !settled) return false;
    if (this.#isDue && (settled.settledAt ?? 0) >= runtime.deadline) {
      // By the server's clock the deadline has come.
      await this.#expire();
      return true;
    }
    const isBeside = commands.open.values().some((command) => command !== next && !isGroup(command));
    writer.addReachedPath(next.path, isBeside ? pass.window + 1 : undefined);
    await replay.deliverAwaited(next, settled);
    return true;
  }

  /** Suspends the job until something that it waits for has settled. Resolves with false if it has to go on at once. */
  async #suspend(required: readonly Command[]): Promise<boolean> {
    const { journal, writer, commands, pass, wakeup, lease, runtime, doubts } = this.#parts;
    const ids = required.flatMap(({ awaitedPromise, pause }) => (awaitedPromise ?? pause)?.id ?? []);
    if (ids.length === 0 && !wakeup.isAwake)
      pass.ruleBroken(`the function ${WAITS_FOR_SOMETHING_ELSE}${lastOf(commands)}`);
    const reason = tooLate(
      required.filter((command) => !isGroup(command)),
      pass.waitsUntil,
    );
    if (reason !== undefined && this.#isDue && (hasDone(journal) || pass.undos.length > 0)) {
      runtime.log.warn(reason);
      await this.#expire(reason);
      return false;
    }
    this.#refuse(reason);
    if (wakeup.isAwake) return false;
    if (!doubts.isEmpty || (this.#isFirst && this.#verifiedUpTo < journal.last)) {
      await this.#verify();
      return false;
    }
    await runtime.beforeSleep?.((entry) => writer.record(entry));
    if (this.#isDue && !required.some((command) => endsBy(command, runtime.deadline))) {
      const id = deadlineId(lease.id);
      const wakes = await lease.create(id, undefined, { due: Math.ceil(runtime.deadline) });
      if (wakes.state !== "pending") {
        // By the server's clock the deadline has come.
        await this.#expire();
        return false;
      }
      ids.push(id);
    }
    if (await lease.suspend(ids)) return true;
    await this.#lookFor(required);
    return false;
  }

  /** An awaited promise has settled: finds out which. */
  async #lookFor(waiting: readonly Command[]): Promise<void> {
    const { awaitables, wakeup, clock } = this.#parts;
    if (waiting.some(({ awaitedPromise, kind }) => awaitedPromise && kind !== "sleep")) {
      await wakeup.wait(clock.now() + MAX_NEWS_DELAY_MS);
      await awaitables.readDue();
    }
    if (!awaitables.next) await awaitables.findSettled(waiting);
  }

  /**
   * Runs the function again before the job is suspended or ends. Code that awaited something that is not the context's
   * does not get as far, and differences outside of steps show in its calls or its result.
   */
  async #verify(): Promise<void> {
    this.#verifiedUpTo = this.#parts.journal.last;
    this.#refuse(await this.#parts.verify());
  }

  /** Refuses a call that has failed and that nothing awaits; in a test, also a step that nothing awaits. */
  #refuseUnawaited(): void {
    const { commands, runtime } = this.#parts;
    const { unawaitedFailure: failed } = commands;
    if (failed) this.#refuse(unhandledFailure(failed.failure?.error, `${failed.kind} "${failed.path}"`));
    const step = runtime.awaitsSteps ? commands.unawaitedStep : undefined;
    if (step)
      this.#refuse(`nothing awaits step "${step.path}": what comes of it is lost. ${ADVICE_ON_UNAWAITED_CALLS}`);
  }

  #refuse(message: string | undefined): void {
    if (message !== undefined) this.#parts.pass.ruleBroken(message);
  }
}

/** Why the job must not run here any more, by the signal of its execution. */
const goneFrom = ({ reason }: AbortSignal): LeaseLost =>
  reason instanceof LeaseLost ? reason : new LeaseLost("the job is no longer run here", { reason: "ended" });

const isNew = (command: Command): boolean => hasEffects(command) && !command.isRunning;

/** Whether a command holds the worker: its work runs, or goes on soon. */
function holdsWorker({ isRunning, pause, kind }: Command, now: number): boolean {
  return isRunning || (pause !== undefined && kind !== "until" && pause.due - now <= MAX_PAUSE_IN_MEMORY_MS);
}

/**
 * Whether the command waits for a timer that wakes the job by its deadline: a sleep or a pause. The time-out of a question or a
 * callback is none.
 */
function endsBy({ pause, awaitedPromise }: Command, deadline: number): boolean {
  return ((pause ?? awaitedPromise)?.due ?? Number.POSITIVE_INFINITY) <= deadline;
}

/** Whether a job has done something that its function may have to undo. */
const hasDone = ({ run, events }: Journal): boolean =>
  run !== undefined || events.some(({ event }) => hasEffects(event));

/** Names the last call of a function that waits for nothing. */
function lastOf({ paths }: Commands): string {
  const last = [...paths].at(-1);
  return last === undefined ? "" : `. Its last call was "${last}"`;
}
