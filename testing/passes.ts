/** A job in simulation that a test moves on pass by pass, with the code and the memory that it says. */

import type { Log, Metrics } from "../core/definitions/context.ts";
import { Execution, type ExecutionEnd, type Runnable, type Runtime } from "../core/engine/execution.ts";
import { Journal, type JournalEntry } from "../core/engine/journal.ts";
import { type Send, TaskLease } from "../core/engine/lease.ts";
import { fromStored, toStored } from "../core/engine/values.ts";
import { fromBase64 } from "../core/store/base64.ts";
import { isJournalEntryOf } from "../core/store/ids.ts";
import type { PromiseRecord } from "../core/store/protocol.ts";
import { Simulation } from "./simulation.ts";
import { TestClock } from "./test-clock.ts";

export const JOB = "job";

const quiet: Log = { debug() {}, info() {}, warn() {}, error() {} };
const uncounted: Metrics = { count() {}, observe() {} };

export class Passes {
  readonly clock = new TestClock();
  /** By how much the server's clock is ahead, in milliseconds. */
  skew = 0;
  readonly sim = new Simulation({ now: () => this.clock.now() + this.skew });
  /** What a worker runs. May be changed between two passes. */
  code: Runnable;
  /** What the worker remembers; another one is taken when it is forgotten. */
  history = new Journal();
  /** Whether news comes of what is waited for. */
  hasNews = true;
  /** Of these nobody hears that they have settled. */
  readonly unheard = new Set<string>();
  /** What the server was asked in the last pass, what it was told and what it answered in characters. */
  readonly cost = { requests: 0, characters: 0, kinds: new Map<string, number>() };
  /** Ends the pass that runs, as the engine does at the deadline and when the job is cancelled. */
  stop = new AbortController();
  readonly #args: unknown;
  readonly #around: Partial<Runtime>;
  readonly #deadline: number;
  #isCreated = false;
  readonly #settled = new Map<string, PromiseRecord>();

  /** `deadline` in milliseconds from now, default a year. */
  constructor(
    code: (ctx: never, args: never) => Promise<unknown>,
    {
      args = {},
      deadline = 365 * 86_400_000,
      ...around
    }: { args?: unknown; deadline?: number } & Partial<Omit<Runtime, "deadline">> = {},
  ) {
    this.code = code as Runnable;
    this.#args = args;
    this.#around = around;
    this.#deadline = deadline;
    this.sim.onSettled.add((promise) => this.#settled.set(promise.id, promise));
  }

  /** Another worker is to go on, which remembers nothing. */
  forget(): void {
    this.history = new Journal();
  }

  /** Runs a pass; the time passes while it does. Undefined when there is nothing to do. */
  async pass(): Promise<ExecutionEnd | undefined> {
    if (!this.#isCreated) await this.sim.start(JOB, this.#args, this.clock.now() + this.#deadline);
    this.#isCreated = true;
    const acquired = await this.sim.acquire(JOB);
    if (!acquired) return undefined;
    const { task, promise } = acquired;
    Object.assign(this.cost, { requests: 0, characters: 0 });
    this.cost.kinds.clear();
    const lease = new TaskLease(acquired, this.#send, this.#watch, this.clock);
    if (task.version > 1 && this.history.version !== task.version - 1) {
      this.forget();
      await this.history.load(JOB, (id) => lease.get(id));
    }
    this.stop = new AbortController();
    const callOff = this.clock.after(promise.timeoutAt - this.clock.now(), () => this.stop.abort());
    const around: Runtime = {
      jobName: JOB,
      deadline: promise.timeoutAt,
      env: {},
      log: quiet,
      metrics: uncounted,
      signal: this.stop.signal,
      clock: this.clock,
      start: async (job) => this.other(job.kind),
      promiseOf: (name) => (name === "" ? undefined : name),
      ...this.#around,
    };
    const outcome = await this.clock.until(new Execution(this.code, this.#args, this.history, lease, around).run());
    callOff();
    if (outcome.kind === "asleep") this.history.version = task.version;
    if (outcome.kind === "complete") await lease.fulfill("resolved", outcome.value);
    if (outcome.kind === "failed") await lease.fulfill("rejected", fromStored(toStored(outcome.error)));
    if (outcome.kind === "blocked") this.sim.kill(JOB);
    return outcome;
  }

  /** Lets the time pass until there is something to do again, and runs the next pass. */
  async next(): Promise<ExecutionEnd> {
    for (;;) {
      const outcome = await this.pass();
      if (outcome) return outcome;
      const next = Math.min((this.sim.nextTimeout() ?? 0) - this.skew, this.clock.next ?? Number.POSITIVE_INFINITY);
      await this.clock.until(this.clock.pause(next - this.clock.now()));
    }
  }

  /** Runs passes until the job ends or is blocked. */
  async toEnd(): Promise<ExecutionEnd> {
    for (;;) {
      const outcome = await this.next();
      if (outcome.kind !== "asleep") return outcome;
    }
  }

  /** Creates another job, or finds it. */
  async other(name: string): Promise<string> {
    if (!this.sim.get(name)) await this.sim.start(name, {}, this.clock.now() + this.#deadline);
    return name;
  }

  /** What is recorded, in order, by the ids of the records. */
  records(): Map<string, JournalEntry> {
    const ids = this.sim.promises().filter((id) => isJournalEntryOf(JOB, id));
    return new Map(ids.map((id) => [id, JSON.parse(fromBase64(this.sim.get(id)?.param.data ?? "")) as JournalEntry]));
  }

  /** The paths of what is recorded, in order. */
  paths(): string[] {
    return [...this.records().values()].map(({ op }) => op);
  }

  /** Answers a question that was asked. */
  answer(path: string, answer: unknown): void {
    for (const [id, { kind, op }] of this.records()) {
      if (kind === "ask" && op === path) this.sim.settle(id, "resolved", answer);
    }
  }

  #send: Send = async (kind, data) => {
    const answer = await this.sim.send(kind, data);
    this.cost.requests += 1;
    this.cost.characters += JSON.stringify(data).length + JSON.stringify(answer.data).length;
    this.cost.kinds.set(kind, (this.cost.kinds.get(kind) ?? 0) + 1);
    return answer;
  };

  /** As a worker's: it registers once for a promise, and is told when that settles. */
  #watched = new Map<string, (promise: PromiseRecord) => void>();
  #watch = async (id: string, fresh: boolean, tell: (promise?: PromiseRecord) => void) => {
    if (this.unheard.has(id)) return { ...(this.sim.get(id) as PromiseRecord), state: "pending" as const };
    const isNew = !this.#watched.has(id);
    this.#watched.set(id, tell);
    if (this.hasNews && isNew)
      this.sim.onSettled.add((promise) => promise.id === id && this.#watched.get(id)?.(promise));
    const known = this.hasNews ? this.#settled.get(id) : undefined;
    if (known || (this.hasNews && !isNew && !fresh)) return known ?? this.sim.get(id);
    this.cost.requests += 1;
    return this.sim.get(id);
  };
}
