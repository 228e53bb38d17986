/** What calls wait for that is no work of the job's own: the ends of sleeps, answers to questions, other jobs. */

import { SECOND } from "../definitions/context.ts";
import type { PromiseRecord } from "../store/protocol.ts";
import type { Command } from "./command.ts";
import type { Execution } from "./execution.ts";
import type { Journal } from "./journal.ts";

/** How soon something that was due, and has not ended by the server's clock, is looked at again, in milliseconds. */
export const LOOK_AGAIN = 250;

/** By how much the clocks of worker and server differ at most, as a rule; in milliseconds. */
const LARGEST_SKEW = 30 * SECOND;

/** How many questions to the server may be under way at once. */
const READS = 16;

export class Awaitables {
  readonly #pass: Pick<Execution, "lease" | "clock" | "around" | "breaks">;
  readonly #history: Journal;
  readonly #pending = new Set<Command>();
  readonly #arrived = new Set<Command>();
  /** Whether something that is watched is known to have changed, but not what. */
  #hasNews = false;

  constructor(pass: Pick<Execution, "lease" | "clock" | "around" | "breaks">, history: Journal) {
    this.#pass = pass;
    this.#history = history;
  }

  /** Of what has settled and was not handed over, the earliest. */
  get next(): Command | undefined {
    let first: Command | undefined;
    for (const op of this.#arrived) if (!first || settledBefore(op, first)) first = op;
    return first;
  }

  /** A call waits for a promise that is one of the job's records. */
  waitsFor(op: Command, promise: PromiseRecord): void {
    const due = op.kind === "sleep" && { due: promise.timeoutAt };
    this.#add(op, { id: promise.id, ...due, ...(promise.state !== "pending" && { settled: promise }) });
  }

  /** A call waits for a promise that is none. */
  waitsElsewhere(op: Command, id: string): void {
    const settled = this.#history.elsewhere(id);
    this.#add(op, { id, ...(settled && { settled }) });
  }

  /** Finds the promise of another job that is awaited. */
  locate(op: Command): void {
    if (op.kind !== "await" || op.awaited) return;
    const { around, lease } = this.#pass;
    const id = around.promiseOf(op.name);
    if (id !== undefined && id !== lease.id) this.waitsElsewhere(op, id);
    else {
      const words =
        id === undefined
          ? "it is no job's name. Pass what ctx.start returned, or a tool's job_name"
          : "it is this job: it would wait for itself";
      this.#pass.breaks(`ctx.await("${op.name}"): ${words}`);
    }
  }

  /** A call waits no longer. */
  delete(op: Command): void {
    this.#pending.delete(op);
    this.#arrived.delete(op);
  }

  /** There is news of what is watched. */
  heard(promise: PromiseRecord | undefined): void {
    if (!promise) this.#hasNews = true;
    else if (promise.state !== "pending") {
      for (const op of this.#pending) if (op.awaited?.id === promise.id) this.#settled(op, promise);
    }
  }

  /** Looks at what was not looked at yet, at sleeps that are due, and at all where there was news and not of what. */
  async lookAround(): Promise<void> {
    const now = this.#pass.clock.now();
    const hasNews = this.#hasNews;
    this.#hasNews = false;
    const isToLookAt = ({ kind, awaited: external }: Command) =>
      kind === "sleep"
        ? (external?.due ?? 0) <= now && (external?.lookedAt ?? 0) + LOOK_AGAIN <= now
        : hasNews || external?.lookedAt === undefined;
    await inTurns([...this.#pending].filter(isToLookAt), (op) => this.look(op, false));
  }

  /**
   * One of the promises that the job waits for has settled, and no news has told which: finds out. The server is asked
   * for those that are pending, and for ends of sleeps and pauses that its clock may have seen before this one.
   */
  async find(waiting: readonly Command[]): Promise<void> {
    let isFound = false;
    await inTurns(
      waiting.filter(({ pause }) => pause),
      async ({ pause }) => {
        const promise = pause && (await this.#pass.lease.get(pause.id));
        if (!promise || promise.state === "pending") return;
        // By the server's clock, which counts, it is over.
        pause.due = 0;
        isFound = true;
      },
    );
    const soon = this.#pass.clock.now() + LARGEST_SKEW;
    const isLikely = ({ kind, awaited: external }: Command) => kind !== "sleep" || (external?.due ?? 0) <= soon;
    await inTurns([...this.#pending].filter(isLikely), (op) => this.look(op, true));
    if (!isFound && this.#arrived.size === 0) await inTurns([...this.#pending], (op) => this.look(op, true));
  }

  /** Looks whether what a call waits for has settled; `fresh`: as the server has it now. */
  async look(op: Command, fresh: boolean): Promise<void> {
    const { kind, name, awaited: external } = op;
    if (!external) return;
    const { lease, clock } = this.#pass;
    external.lookedAt = clock.now();
    const promise = await (kind === "sleep" ? lease.get(external.id) : lease.watch(external.id, fresh));
    if (promise && promise.state !== "pending") this.#settled(op, promise);
    else if (!promise && kind === "await") this.#pass.breaks(`ctx.await("${name}"): there is no such job`);
  }

  #add(op: Command, external: NonNullable<Command["awaited"]>): void {
    op.awaited = external;
    if (!op.isOver) (external.settled ? this.#arrived : this.#pending).add(op);
  }

  #settled(op: Command, promise: PromiseRecord): void {
    if (!op.awaited || op.awaited.settled) return;
    op.awaited.settled = promise;
    this.#pending.delete(op);
    if (!op.isOver) this.#arrived.add(op);
    this.#history.settled(promise);
  }
}

const settledAt = (op: Command): number => op.awaited?.settled?.settledAt ?? 0;
const settledBefore = (a: Command, b: Command): boolean =>
  settledAt(a) < settledAt(b) || (settledAt(a) === settledAt(b) && a.path < b.path);

async function inTurns<T>(items: readonly T[], fn: (item: T) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async () => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) await fn(item);
  };
  await Promise.all(Array.from({ length: Math.min(READS, items.length) }, lane));
}
