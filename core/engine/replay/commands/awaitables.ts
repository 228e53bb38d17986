/** The awaitables of a job, which are not its own work: ends of sleeps, answers to questions, callbacks, other jobs. */
import { SECOND } from "../../../author/context.ts";
import type { PromiseRecord } from "../../../resonate/connection/protocol.ts";
import type { Clock } from "../../clock.ts";
import type { Lease } from "../../job-lease.ts";
import type { Journal } from "../../journal.ts";
import type { Runtime } from "../../runtime.ts";
import type { FunctionPass } from "../function-pass.ts";
import type { Command, Commands } from "./commands.ts";

/** How soon a sleep is read again if it is due by this clock but not by the server's, in milliseconds. */
export const REREAD_AFTER_MS = 250;

/** The largest usual difference between the clocks of worker and server, in milliseconds. */
const MAX_CLOCK_SKEW_MS = 30 * SECOND;

/** How many promises are read at once. */
const MAX_CONCURRENT_READS = 16;

interface AwaitablesParts {
  readonly commands: Commands;
  readonly journal: Journal;
  readonly lease: Lease;
  readonly clock: Clock;
  readonly runtime: Runtime;
  readonly pass: FunctionPass;
}

export class Awaitables {
  readonly #parts: AwaitablesParts;
  /** Whether a watched promise is known to have settled, but not which. */
  #hasNews = false;

  constructor(parts: AwaitablesParts) {
    this.#parts = parts;
  }

  /** The command whose awaited promise settled first, among those whose outcome has not been handed over. */
  get next(): Command | undefined {
    let first: Command | undefined;
    for (const command of this.#parts.commands.open) {
      if (command.awaitedPromise?.settlement && (!first || settledBefore(command, first))) first = command;
    }
    return first;
  }

  get #pending(): Command[] {
    return [...this.#parts.commands.open].filter(({ awaitedPromise }) => awaitedPromise && !awaitedPromise.settlement);
  }

  /** Makes a command wait for a promise that is a record of the job. */
  waitsFor(command: Command, promise: PromiseRecord): void {
    command.awaitedPromise = {
      id: promise.id,
      due: command.kind === "sleep" ? promise.timeoutAt : undefined,
      settlement: promise.state === "pending" ? undefined : promise,
    };
  }

  /** Determines the promise that an `await` or a callback waits for. */
  locate(command: Command): void {
    const { awaitedPromise, callback, kind, name } = command;
    if (awaitedPromise || (kind !== "await" && !callback)) return;
    const { runtime, lease, journal, pass } = this.#parts;
    const id = callback ? callback.id : runtime.promiseOf(name);
    if (id === undefined || id === lease.id) {
      const problem =
        id === undefined
          ? "it is not the name of a job. Pass the name of what ctx.start returned, or a tool's job_name"
          : "it is this job: it would wait for itself";
      pass.ruleBroken(`ctx.await("${name}"): ${problem}`);
      return;
    }
    command.awaitedPromise = { id, settlement: journal.settledElsewhere(id) };
  }

  /** Takes news of a watched promise. If the news lacks the promise, the next {@link readDue} finds out which it is. */
  onNews(promise: PromiseRecord | undefined): void {
    if (!promise) this.#hasNews = true;
    else if (promise.state !== "pending") {
      for (const command of this.#pending)
        if (command.awaitedPromise?.id === promise.id) this.#settle(command, promise);
    }
  }

  /** Reads the sleeps that are due, and other promises that were never read; after news without its promise, all others. */
  async readDue(): Promise<void> {
    const now = this.#parts.clock.now();
    const hasNews = this.#hasNews;
    this.#hasNews = false;
    const isToRead = ({ kind, awaitedPromise }: Command) =>
      kind === "sleep"
        ? (awaitedPromise?.due ?? 0) <= now && (awaitedPromise?.readAt ?? 0) + REREAD_AFTER_MS <= now
        : hasNews || awaitedPromise?.readAt === undefined;
    await someAtOnce(this.#pending.filter(isToRead), (command) => this.read(command, false));
  }

  /**
   * Checks which of the awaited promises have settled, in case that news was lost. Reads the pauses, the pending promises,
   * and the sleeps that may be over by the server's clock; if none has settled, all sleeps.
   */
  async findSettled(waiting: readonly Command[]): Promise<void> {
    const { lease, clock } = this.#parts;
    let isFound = false;
    const paused = waiting.flatMap(({ pause }) => pause ?? []);
    await someAtOnce(paused, async (pause) => {
      const promise = await lease.get(pause.id);
      if (!promise || promise.state === "pending") return;
      // Over by the server's clock, which decides.
      pause.due = 0;
      isFound = true;
    });
    const horizon = clock.now() + MAX_CLOCK_SKEW_MS;
    const isLikely = ({ kind, awaitedPromise }: Command) => kind !== "sleep" || (awaitedPromise?.due ?? 0) <= horizon;
    await someAtOnce(this.#pending.filter(isLikely), (command) => this.read(command, true));
    if (!isFound && !this.next) await someAtOnce(this.#pending, (command) => this.read(command, true));
  }

  /** Reads whether a command's promise has settled; `fresh`: as the server has it now. */
  async read(command: Command, fresh: boolean): Promise<void> {
    const { kind, name, awaitedPromise, callback } = command;
    if (!awaitedPromise) return;
    const { lease, clock, pass } = this.#parts;
    awaitedPromise.readAt = clock.now();
    let promise = await (kind === "sleep" ? lease.get(awaitedPromise.id) : lease.watch(awaitedPromise.id, fresh));
    if (!promise && callback) {
      // Creates the callback's promise, or finds it if an early call has created it.
      await lease.create(awaitedPromise.id, callback.param, { until: callback.until });
      promise = await lease.watch(awaitedPromise.id, fresh);
    }
    if (promise && promise.state !== "pending") this.#settle(command, promise);
    else if (!promise && kind === "await") pass.ruleBroken(`ctx.await("${name}"): there is no such job`);
  }

  #settle({ awaitedPromise }: Command, promise: PromiseRecord): void {
    if (!awaitedPromise || awaitedPromise.settlement) return;
    awaitedPromise.settlement = promise;
    this.#parts.journal.noteSettled(promise);
  }
}

const settledAt = ({ awaitedPromise }: Command): number => awaitedPromise?.settlement?.settledAt ?? 0;
const settledBefore = (a: Command, b: Command): boolean =>
  settledAt(a) < settledAt(b) || (settledAt(a) === settledAt(b) && a.path < b.path);

async function someAtOnce<T>(items: readonly T[], fn: (item: T) => Promise<void>): Promise<void> {
  const queue = items.values();
  const lane = async () => {
    for (const item of queue) await fn(item);
  };
  await Promise.all(Array.from({ length: Math.min(MAX_CONCURRENT_READS, items.length) }, lane));
}
