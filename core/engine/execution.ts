/** One execution of a durable function: puts its parts together, and runs them until the job has ended or waits. */
import type { Context } from "../definitions/context.ts";
import { type Clock, machineClock } from "./clock.ts";
import type { Journal } from "./journal.ts";
import { JournalWriter } from "./journal-writer.ts";
import { Awaitables } from "./replay/awaitables.ts";
import type { Command, Work } from "./replay/command.ts";
import { CommandExecutor } from "./replay/command-executor.ts";
import { Commands } from "./replay/commands.ts";
import { Blocked, DIFFERS, endsDiffer } from "./replay/determinism.ts";
import { ExecutionContext } from "./replay/execution-context.ts";
import { FunctionRun } from "./replay/function-run.ts";
import { Replay } from "./replay/replay.ts";
import { StateReport } from "./replay/state-report.ts";
import { Wakeup } from "./replay/wakeup.ts";
import type { ExecutionEnd, Lease, Runnable, Runtime } from "./runtime.ts";
import type { StepHost } from "./steps/attempt.ts";
import { performStep } from "./steps/step.ts";
import { performLooks } from "./steps/until.ts";

export { type ExecutionEnd, type Lease, LeaseLost, type Runnable, type Runtime, type When } from "./runtime.ts";

/** Made once: each new one would record its stack. */
const OVER = new DOMException("the execution is over", "AbortError");

export class Execution {
  readonly #fn: Runnable;
  readonly #args: unknown;
  readonly #journal: Journal;
  readonly #lease: Lease;
  readonly #runtime: Runtime;
  readonly #clock: Clock;
  readonly #over = new AbortController();
  readonly #wakeup: Wakeup;
  readonly #run: FunctionRun;
  readonly #commands = new Commands();
  readonly #writer: JournalWriter;
  readonly #awaitables: Awaitables;
  readonly #replay: Replay;
  readonly #report: StateReport;
  readonly #context: ExecutionContext;

  constructor(fn: Runnable, args: unknown, journal: Journal, lease: Lease, runtime: Runtime) {
    this.#fn = fn;
    this.#args = args;
    this.#journal = journal;
    this.#lease = lease;
    this.#runtime = runtime;
    const clock = runtime.clock ?? machineClock;
    const commands = this.#commands;
    this.#clock = clock;
    this.#wakeup = new Wakeup(clock);
    const run = new FunctionRun(clock, this.#wakeup, journal.events.length > 0);
    this.#run = run;
    this.#writer = new JournalWriter(journal, lease, this.#wakeup);
    this.#awaitables = new Awaitables({ commands, journal, lease, clock, runtime, run });
    this.#replay = new Replay({ journal, commands, awaitables: this.#awaitables, run });
    this.#report = new StateReport(commands, run, runtime.onState);
    const isLive = () => !run.isReplaying;
    this.#context = new ExecutionContext({
      commands,
      run,
      report: this.#report,
      runtime: {
        jobName: runtime.jobName,
        deadline: runtime.deadline,
        env: runtime.env,
        start: (job, given) => runtime.start(job, given),
        log: onlyIf(isLive, runtime.log),
        metrics: onlyIf(isLive, runtime.metrics),
      },
      clock,
      signal: this.#over.signal,
    });
  }

  /** Replays the journal, and goes on from there. @throws {LeaseLost} */
  async run(): Promise<ExecutionEnd> {
    const { signal } = this.#runtime;
    const abort = () => {
      this.#abort(signal.reason);
      this.#wakeup.wake();
    };
    this.#lease.onNews = (promise) => {
      this.#awaitables.heard(promise);
      this.#wakeup.wake();
    };
    signal.addEventListener("abort", abort, { once: true });
    try {
      if (signal.aborted) abort();
      await this.#replayAll();
      this.#run.isReplaying = false;
      return await this.#executor().toEnd();
    } catch (error) {
      if (error instanceof Blocked) return { kind: "blocked", reason: error.message };
      throw error;
    } finally {
      this.#close();
      this.#writer.abandon();
      signal.removeEventListener("abort", abort);
      this.#lease.onNews = () => {};
    }
  }

  #executor(): CommandExecutor {
    const host: StepHost = {
      runtime: this.#runtime,
      lease: this.#lease,
      clock: this.#clock,
      signal: this.#over.signal,
      record: (command, entry, when) => this.#writer.post(command, entry, when),
      breaks: (words) => this.#run.breaks(words),
      progress: (progress) => this.#report.progress(progress),
    };
    return new CommandExecutor({
      journal: this.#journal,
      writer: this.#writer,
      commands: this.#commands,
      run: this.#run,
      replay: this.#replay,
      awaitables: this.#awaitables,
      report: this.#report,
      wakeup: this.#wakeup,
      lease: this.#lease,
      clock: this.#clock,
      runtime: this.#runtime,
      perform: (command, work) => perform(host, command, work),
      verify: () => this.#verify(),
    });
  }

  async #replayAll(): Promise<void> {
    // A function may change what it is handed.
    const args = structuredClone(this.#args) as never;
    await this.#run.begin(async () => this.#fn(this.#context as Context as Context<never>, args));
    await this.#replay.all();
  }

  /** Runs the function again from its records alone; resolves with how that differs from this run. */
  async #verify(): Promise<string | undefined> {
    const { onState: _, ...runtime } = this.#runtime;
    const again = new Execution(this.#fn, this.#args, this.#journal, this.#lease, runtime);
    const difference = await again.#differenceTo(this);
    return difference && `run again from its records, the function ${difference}. ${DIFFERS}`;
  }

  async #differenceTo(first: Execution): Promise<string | undefined> {
    this.#run.isReplaying = true;
    try {
      await this.#replayAll();
      for (const path of first.#writer.heard) await this.#replay.heard(path, { kind: "heard", op: path });
    } catch (error) {
      if (error instanceof Blocked) return `did something else: ${error.message}`;
      throw error;
    } finally {
      this.#close();
    }
    for (const path of first.#commands.paths) if (!this.#commands.get(path)) return `did not call "${path}"`;
    for (const path of this.#commands.paths) {
      if (!first.#commands.get(path)) return `called "${path}", which it had not`;
    }
    return endsDiffer(first.#run.end, this.#run.end);
  }

  #close(): void {
    this.#context.abandon();
    this.#abort(OVER);
  }

  #abort(reason: unknown): void {
    this.#over.abort(reason);
    for (const { abort } of this.#commands.open) abort?.abort(reason);
  }
}

function perform(host: StepHost, command: Command, work: Work): Promise<void> {
  switch (work.do) {
    case "record":
      return host.record(command, work.entry, work.when);
    case "attempt":
      return performStep(host, command, work);
    case "look":
      return performLooks(host, command, work);
  }
}

/** `whole`, of which methods do something only where `isHeard`. */
function onlyIf<T extends object>(isHeard: () => boolean, whole: T): T {
  return new Proxy(whole, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== "function") return method;
      return (...args: unknown[]) => (isHeard() ? method.apply(target, args) : undefined);
    },
  });
}
