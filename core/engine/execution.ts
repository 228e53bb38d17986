/** One execution of a durable function: puts its parts together, and runs them until the job has ended or waits. */
import { type Context, DeadlineExceeded } from "../author/context.ts";
import { copyOf, encodeValue } from "../resonate/codec.ts";
import { undoAll } from "./calls/cleanup.ts";
import { contextOf } from "./calls/context.ts";
import { Scope } from "./calls/scope.ts";
import { machineClock, Wakeup } from "./clock.ts";
import { CommandExecutor } from "./command-executor.ts";
import type { Lease } from "./job-lease.ts";
import { LeaseLost } from "./job-lease.ts";
import { JournalWriter } from "./journal-writer.ts";
import { type Journal, type JournalEntry, JournalRecord } from "./journal.ts";
import { deliverWinners, interrupt } from "./replay/cancellation.ts";
import { Awaitables } from "./replay/commands/awaitables.ts";
import { Commands, hasEffects } from "./replay/commands/commands.ts";
import { Spending } from "./replay/commands/spending.ts";
import { ADVICE_ON_DIFFERENCES, Blocked, CODE_CHANGED, endsDiffer } from "./replay/determinism.ts";
import { FunctionPass } from "./replay/function-pass.ts";
import { Replay } from "./replay/replay.ts";
import { StateReport } from "./replay/state-report.ts";
import type { ExecutionEnd, Runnable, Runtime } from "./runtime.ts";
import { layersOf } from "./step-layers.ts";
import { Doubts } from "./steps/doubts.ts";

/** Created once, because each new error would capture a stack. */
const EXECUTION_OVER = new DOMException("the execution is over", "AbortError");

export class Execution {
  readonly #fn: Runnable;
  readonly #args: unknown;
  readonly #executionEnd = new AbortController();
  /** For the function's signal: aborted at a cancellation, the deadline or a lost lease. */
  readonly #functionStop = new AbortController();
  readonly #parts: ReturnType<typeof partsOf>;
  readonly #scope: Scope;

  constructor(fn: Runnable, args: unknown, journal: Journal, lease: Lease, runtime: Runtime) {
    this.#fn = fn;
    this.#args = args;
    this.#parts = partsOf(journal, lease, runtime, this.#executionEnd.signal);
    this.#scope = new Scope({
      ...this.#parts,
      signal: this.#functionStop.signal,
      contextOf,
    });
  }

  /** Replays the journal, and goes on from there. @throws {LeaseLost} */
  async run(): Promise<ExecutionEnd> {
    const { runtime, lease, wakeup, awaitables, pass, writer } = this.#parts;
    const abort = () => {
      this.#cut();
      this.#functionStop.abort(runtime.signal.reason);
      this.#abort(runtime.signal.reason);
      wakeup.wake();
    };
    lease.onNews = (promise) => {
      awaitables.onNews(promise);
      wakeup.wake();
    };
    runtime.signal.addEventListener("abort", abort, { once: true });
    try {
      if (runtime.signal.aborted) abort();
      await this.#replay();
      pass.isReplaying = false;
      const openBefore = new Set([...this.#parts.commands.open].filter(hasEffects));
      const cancel = (at: number, by?: "deadline", reason?: string) =>
        interrupt(this.#parts, { at, by, reason, openBefore, endsWith: (outcome) => this.#endsWith(outcome) });
      if (runtime.cancelled) await cancel(runtime.cancelled.at);
      return await new CommandExecutor({
        ...this.#parts,
        layers: layersOf(runtime.steps),
        verify: () => this.#again().#objectionTo(this.#parts),
        stop: () => {
          const reason = new DeadlineExceeded();
          this.#functionStop.abort(reason);
          for (const { abort, isShielded } of this.#parts.commands.open) if (!isShielded) abort?.abort(reason);
        },
        // An outcome that settles at the deadline itself is too late.
        expire: (reason) => cancel(runtime.deadline - 1, "deadline", reason),
      }).toEnd();
    } catch (error) {
      if (error instanceof Blocked) return { kind: "blocked", reason: error.message };
      if (error instanceof LeaseLost) {
        this.#cut();
        this.#functionStop.abort(error);
      }
      throw error;
    } finally {
      this.#close();
      writer.abandon();
      runtime.signal.removeEventListener("abort", abort);
      lease.onNews = () => {};
    }
  }

  async #replay(): Promise<void> {
    // A function may change its arguments.
    const args = copyOf(this.#args) as never;
    await this.#parts.pass.begin(
      async () => this.#fn(contextOf(this.#scope) as Context<never>, args),
      (error) => undoAll(this.#scope, error),
    );
    await this.#parts.replay.all();
  }

  #again(): Execution {
    const { journal, lease, runtime } = this.#parts;
    const { onState: _, ...withoutReports } = runtime;
    return new Execution(this.#fn, this.#args, journal, lease, withoutReports);
  }

  /** Whether the function would return, or continue in another run, if it were also handed this outcome. */
  async #endsWith(outcome: JournalEntry): Promise<boolean> {
    const repeated = this.#again();
    const { pass, replay, commands, lease, journal } = repeated.#parts;
    const record = async (event: JournalEntry) => {
      const promise = { id: lease.run, state: "resolved" as const, value: {}, tags: {}, timeoutAt: 0, createdAt: 0 };
      return new JournalRecord(journal.last + 1, { ...promise, param: encodeValue(event) });
    };
    try {
      await repeated.#repeat(this.#parts);
      const command = commands.get(outcome.op);
      if (command) await replay.deliver(command, await record(outcome));
      await deliverWinners(repeated.#parts, record);
      return pass.next !== undefined || (pass.end !== undefined && "value" in pass.end);
    } finally {
      repeated.#close();
    }
  }

  /** Hands over the outcomes that another pass of the function was handed, whether recorded yet or not. */
  async #repeat({ writer }: ReturnType<typeof partsOf>): Promise<void> {
    const { pass, replay } = this.#parts;
    pass.isReplaying = true;
    await this.#replay();
    for (const path of writer.reachedPaths) await replay.deliverAgain(path, { kind: "reached", op: path });
  }

  /** Runs the function from the records of the first pass alone. Resolves with what that shows to be wrong, in words. */
  async #objectionTo(first: ReturnType<typeof partsOf>): Promise<string | undefined> {
    const { commands, lines } = this.#parts;
    for (const path of first.doubts.paths) lines.set(path, "");
    let blocked: Blocked | undefined;
    try {
      await this.#repeat(first);
    } catch (error) {
      if (!(error instanceof Blocked)) throw error;
      blocked = error;
    } finally {
      this.#close();
    }
    const objection = first.doubts.resolve(commands, lines, !blocked);
    if (objection !== undefined) return objection;
    const difference = blocked
      ? `did something else: ${blocked.message.replace(CODE_CHANGED, "")}`
      : this.#differenceTo(first);
    return difference && `run again from its records, the function ${difference}. ${ADVICE_ON_DIFFERENCES}`;
  }

  #differenceTo(first: ReturnType<typeof partsOf>): string | undefined {
    const { pass, commands } = this.#parts;
    for (const path of first.commands.paths) if (!commands.get(path)) return `did not call "${path}"`;
    for (const path of commands.paths) if (!first.commands.get(path)) return `called "${path}", which it had not`;
    return endsDiffer(outcomeOf(first.pass), outcomeOf(pass));
  }

  /** Marks the steps under way: if the job was cancelled, their outcomes are left to its clean-up. */
  #cut(): void {
    const { commands, runtime } = this.#parts;
    if (runtime.cancelled) return;
    for (const command of commands.open) if (hasEffects(command) && command.isRunning) command.isCut = true;
  }

  #close(): void {
    this.#scope.abandon();
    this.#abort(EXECUTION_OVER);
  }

  #abort(reason: unknown): void {
    this.#executionEnd.abort(reason);
    for (const { abort } of this.#parts.commands.open) abort?.abort(reason);
  }
}

const outcomeOf = ({ end, next }: FunctionPass) => end ?? (next && { next: next.args });

/** The parts of an execution. Each is handed the others, and declares in its own interface which parts it uses. */
function partsOf(journal: Journal, lease: Lease, runtime: Runtime, signal: AbortSignal) {
  const clock = runtime.clock ?? machineClock;
  const wakeup = new Wakeup(clock);
  const commands = new Commands(runtime.run?.before);
  const pass = new FunctionPass(clock, wakeup, runtime, journal.events.length > 0);
  const writer = new JournalWriter(journal, lease, wakeup, runtime.log);
  const { budget, run } = runtime;
  const spending = budget || run?.before.spent ? new Spending(budget, run?.before.spent) : undefined;
  const report = new StateReport(commands, pass, spending, runtime);
  const doubts = new Doubts();
  /** The lines of the author's code that make calls, by their paths: of those that are in it beforehand. */
  const lines = new Map<string, string>();
  const awaitables = new Awaitables({ commands, journal, lease, clock, runtime, pass });
  const replay = new Replay({ journal, commands, awaitables, pass, runtime });
  return {
    journal,
    lease,
    runtime,
    signal,
    clock,
    wakeup,
    commands,
    pass,
    writer,
    report,
    spending,
    awaitables,
    replay,
    doubts,
    lines,
  };
}
