/**
 * Hands the outcomes in the journal to the function, in their order. Each record is written before its outcome is handed
 * over, so a replay has the same sequence of windows under every timing.
 */
import { DeadlineExceeded, JobCancelled, JobFailed, NondeterminismError, TimeoutError } from "../../author/context.ts";
import { fromStored, wordsOf } from "../../author/values.ts";
import { decodeValue } from "../../resonate/codec.ts";
import type { PromiseRecord } from "../../resonate/connection/protocol.ts";
import { isLate } from "../../resonate/deadline.ts";
import { parseExact } from "../../resonate/json.ts";
import type { Journal, JournalEntry, JournalRecord } from "../journal.ts";
import type { Runtime } from "../runtime.ts";
import type { Awaitables } from "./commands/awaitables.ts";
import { type Command, type Commands, hasEffects } from "./commands/commands.ts";
import { Blocked, mismatch, otherWinner } from "./determinism.ts";
import type { FunctionPass } from "./function-pass.ts";

interface ReplayParts {
  readonly journal: Journal;
  readonly commands: Commands;
  readonly awaitables: Awaitables;
  readonly pass: FunctionPass;
  readonly runtime: Runtime;
}

export class Replay {
  readonly #parts: ReplayParts;

  constructor(parts: ReplayParts) {
    this.#parts = parts;
  }

  /** Hands over all recorded outcomes. @throws {Blocked} */
  async all(): Promise<void> {
    const { journal, commands, awaitables } = this.#parts;
    this.#refuseBroken(0);
    let lastDelivered = 0;
    for (const record of journal.events) {
      const { event } = record;
      // Reads the awaited promises together: there may be hundreds.
      if (event.after) await awaitables.readDue();
      for (const path of event.after ?? []) {
        await this.deliverAgain(path, event);
        this.#refuseBroken(lastDelivered);
      }
      if (event.kind === "reached" || event.kind === "alive") continue;
      if (event.kind === "cancelled") {
        await this.interrupt(record);
        lastDelivered = record.n;
        continue;
      }
      const command = commands.get(event.op);
      if (!command || !fits(command, event)) throw this.#mismatch(event, command);
      await this.deliver(command, record);
      lastDelivered = record.n;
      this.#refuseBroken(lastDelivered);
    }
  }

  /** Hands over an awaited outcome that has reached the function before. @throws {Blocked} */
  async deliverAgain(path: string, event: JournalEntry): Promise<void> {
    const { commands, awaitables } = this.#parts;
    const command = commands.get(path);
    if (command) awaitables.locate(command);
    if (!command?.awaitedPromise) throw this.#mismatch(event, command);
    if (command.isOver) return;
    if (!command.awaitedPromise.settlement) await awaitables.read(command, false);
    if (!command.awaitedPromise.settlement) await awaitables.read(command, true);
    const { settlement } = command.awaitedPromise;
    const now = this.#parts.pass.brokenRule
      ? "was removed since then: cancel this job and start it again"
      : "is open now";
    if (!settlement) throw new Blocked(`${command.kind} "${path}" had ended when its outcome was used, but ${now}`);
    await this.deliverAwaited(command, settlement);
  }

  /** Rejects all calls that the function waits in, because the job was cancelled or its deadline has come. */
  async interrupt({ event, promise }: JournalRecord): Promise<void> {
    const { commands, pass, runtime } = this.#parts;
    pass.isInterrupted = true;
    pass.waitsUntil = Math.max(pass.waitsUntil, runtime.cleanupUntil ?? 0);
    const { by, reason } = event.kind === "cancelled" ? event : {};
    await pass.moveOn(
      () => {
        const open = commands.closeForInterruption(pass.window);
        const unbegun = new Set("unbegun" in event ? event.unbegun : []);
        const unfinished = open.filter((command) => hasEffects(command) && !unbegun.has(command.path));
        const paths = unfinished.map(({ path }) => path);
        const error = by === "deadline" ? new DeadlineExceeded(paths, reason) : new JobCancelled(paths);
        pass.interrupt(error, reason, () => {
          for (const { reject } of open) reject(error);
        });
      },
      undefined,
      promise.createdAt,
    );
  }

  /** Applies a record, and hands over the outcome if it holds one. @throws {Blocked} */
  async deliver(command: Command, record: JournalRecord): Promise<void> {
    const { n, event, promise } = record;
    switch (event.kind) {
      case "sleep":
      case "ask":
        if ("error" in event && event.error) break;
        this.#parts.awaitables.waitsFor(command, promise);
        command.isRunning = false;
        return;
      case "begin":
        command.beginning = { n, at: event.at };
        if (event.of === "start") command.child = event.child;
        return;
      case "retry":
        command.attempts = event.attempt;
        command.failingSince = event.since;
        command.lastError = wordsOf(event.error);
        command.pause = { id: promise.id, due: promise.timeoutAt };
        command.isRunning = false;
        return;
      case "race": {
        const { winner } = command;
        if (!command.isOver && winner?.key !== event.winner) throw otherWinner(command.path, event.winner, winner?.key);
        return this.#settle(command, promise.createdAt, () => {
          if (winner?.failed) command.reject(winner.value);
          else command.resolve({ winner: winner?.key, value: winner?.value });
        });
      }
    }
    const error = "error" in event ? event.error : undefined;
    if (event.kind === "emit") this.#parts.commands.outputs.delete(command);
    // The record of an `emit` holds the size of the output, which the function does not get.
    const value = event.kind === "emit" ? undefined : record.value;
    if (command.child !== undefined && typeof value === "string") command.child = value;
    const { pass, runtime } = this.#parts;
    const failure = error && fromStored(error, runtime.errors);
    return this.#settle(command, promise.createdAt, () => {
      if (failure instanceof NondeterminismError) pass.unstorable ??= failure;
      if (failure) command.reject(failure);
      else command.resolve(value);
    });
  }

  /** Hands over the outcome of a sleep, a question, a callback or another job. */
  async deliverAwaited(command: Command, settled: PromiseRecord): Promise<void> {
    await this.#settle(command, settled.settledAt ?? 0, () => {
      const isResolved = settled.state === "resolved";
      if (command.kind === "sleep") command.resolve(undefined);
      else if (command.kind === "ask") command.resolve(isResolved ? decodeValue(settled.value) : { action: "cancel" });
      else if (command.kind === "callback") {
        if (isResolved) command.resolve(sentIn(settled));
        else command.reject(new TimeoutError(`nothing was sent to the callback "${command.path}" in time`));
      } else if (isResolved) command.resolve(decodeValue(settled.value));
      else command.reject(new JobFailed(command.name, ...whyNot(settled)));
    });
  }

  async #settle(command: Command, at: number, settle: () => void): Promise<void> {
    if (command.isOver) return;
    await this.#parts.pass.moveOn(
      () => {
        this.#parts.commands.close(command);
        settle();
      },
      command,
      at,
    );
  }

  /**
   * Blocks the job if the function breaks a rule although later records exist: the code must have changed, since code
   * that broke the rule before would have left none. Records of the same batch as the last one handed over may exist.
   */
  #refuseBroken(lastDelivered: number): void {
    const { brokenRule } = this.#parts.pass;
    const last = this.#parts.journal.events.at(-1);
    if (brokenRule && last && (last.event.with ?? last.n) > lastDelivered) throw new Blocked(brokenRule.message);
  }

  #mismatch(event: JournalEntry, command: Command | undefined): Blocked {
    const { journal, commands, pass } = this.#parts;
    const recordedPaths = new Set(journal.events.map((each) => each.event.op));
    const instead =
      command && !command.isOver ? [command] : [...commands.open].filter(({ path }) => !recordedPaths.has(path));
    return mismatch(event, instead, pass.end);
  }
}

/** Whether such a command can have left such a record. */
function fits({ kind }: Command, event: JournalEntry): boolean {
  if (event.kind === "begin") return event.of === kind;
  return event.kind === "retry" ? ["step", "start", "emit"].includes(kind) : event.kind === kind;
}

function whyNot({ state, value }: PromiseRecord): [status: string, reason: string] {
  if (state === "rejected_canceled") return ["cancelled", "it was cancelled"];
  if (state === "rejected_timedout") return ["timed_out", "it did not finish before its deadline"];
  const thrown = decodeValue(value);
  if (isLate(thrown)) return ["timed_out", thrown.message];
  return ["failed", thrown instanceof Error ? thrown.message : String(thrown ?? "no reason given")];
}

/** The value sent to a callback: JSON as text from its address, any value if somebody settled its promise at the server. */
function sentIn({ value }: PromiseRecord): unknown {
  const sent = decodeValue(value);
  try {
    return typeof sent === "string" ? parseExact(sent) : (sent ?? null);
  } catch {
    return sent;
  }
}
