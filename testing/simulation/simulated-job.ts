/** A simulated job. A test runs it execution by execution, and chooses the worker's code and memory for each. */
import {
  fromStored,
  type Log,
  type Metrics,
  NondeterminismError,
  storable,
  toStored,
} from "../../core/author/index.ts";
import {
  beginRun,
  callbackOf,
  Execution,
  type ExecutionEnd,
  type JobEnd,
  Journal,
  type JournalEntry,
  type LeasedTask,
  RecordRefused,
  type Runnable,
  type Runtime,
  readNewest,
  type Send,
  TaskLease,
  type Watch,
} from "../../core/engine/index.ts";
import {
  childOf,
  cleanUpId,
  fromBase64,
  journalEntryId,
  parseStored,
  type PromiseRecord,
  runId,
} from "../../core/resonate/index.ts";
import { Simulation } from "./simulation.ts";
import { stepFeatures } from "./step-features.ts";
import { TestClock } from "./test-clock.ts";

export const JOB_NAME = "job";

/** How long the clean-up after a deadline may take. */
export const CLEANUP_MS = 60_000;

/** The seed of the job's random values. */
export const SEED = "a seed";

export const noLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
export const noMetrics: Metrics = { count() {}, observe() {} };

/** The parts of a worker that one execution needs. */
interface Host {
  /** Its memory of the job. */
  journal: Journal;
  send: Send;
  watch: Watch;
  runtime: Pick<Runtime, "signal" | "start" | "cancel" | "endChild" | "promiseOf"> & Partial<Runtime>;
  /** Replaces the suspension of the task. */
  suspend?: (ids: readonly string[]) => Promise<boolean>;
}

/** The runtime of a run after the first. */
function runtimeOf<R extends Partial<Runtime>>(run: NonNullable<Journal["run"]>, runtime: R) {
  const { onStep, ...others } = runtime;
  return {
    ...others,
    run,
    seed: run.seed,
    startedAt: run.startedAt,
    ...(onStep && { onStep: (path: string, fn: object) => onStep(`${path}, run ${run.n}`, fn) }),
  };
}

/** Runs one execution and stores its outcome; resolves with the outcome and the worker's memory. @throws {LeaseLost} */
export async function execute(code: Runnable, args: unknown, leasedTask: LeasedTask, host: Host) {
  const { task, promise, cleansUp } = leasedTask;
  const defaults = {
    jobName: JOB_NAME,
    deadline: promise.timeoutAt - CLEANUP_MS,
    ...(!cleansUp && { cleanupUntil: promise.timeoutAt }),
    startedAt: promise.createdAt,
    seed: SEED,
    env: {},
    log: noLog,
    metrics: noMetrics,
    callbackUrl: (id: string) => `https://edge.invalid/callbacks/${encodeURIComponent(id)}`,
    steps: stepFeatures(),
  };
  const runtime = { ...defaults, ...host.runtime };
  const lease = new TaskLease(leasedTask, {
    send: host.send,
    watch: host.watch,
    clock: runtime.clock,
    features: runtime.steps,
  });
  if (host.suspend) lease.suspend = host.suspend;
  let { journal } = host;
  if (cleansUp || (task.version > 1 && journal.version !== task.version - 1)) {
    journal = await readNewest(new Journal(), JOB_NAME, (id) => lease.get(id));
  }
  lease.journal = journal;
  const endChildren = async () => {
    const children = new Set([...(journal.run?.children ?? []), ...journal.children]);
    for (const child of children) await runtime.endChild(child);
  };
  if (cleansUp) await endChildren();
  const run = async (): Promise<JobEnd> => {
    const laterRun = journal.run;
    const runRuntime = laterRun ? runtimeOf(laterRun, runtime) : runtime;
    const end = await new Execution(code, laterRun ? laterRun.args : args, journal, lease, runRuntime).run();
    if (end.kind !== "continued") return end;
    if (cleansUp) return { kind: "complete", value: { next: end.args } };
    const children = [...(laterRun?.children ?? []), ...journal.children];
    journal = await beginRun(journal, lease, { args: end.args, version: 1, before: end.outputCounts, children });
    lease.journal = journal;
    return run();
  };
  const end = storableEnd(
    await run().catch((error): JobEnd => {
      if (error instanceof RecordRefused) return { kind: "failed", error };
      throw error;
    }),
  );
  if (end.kind === "asleep") journal.version = task.version;
  if (end.kind === "complete") await lease.fulfill("resolved", end.value);
  if (end.kind === "failed") await endChildren();
  if (end.kind === "failed") await lease.fulfill("rejected", fromStored(toStored(end.error)));
  return { end, journal };
}

/** Turns a result that cannot be stored into a failure of the job. */
function storableEnd<End extends ExecutionEnd>(end: End): End | { kind: "failed"; error: unknown } {
  try {
    if (end.kind === "complete") storable(end.value, "the function");
    return end;
  } catch (error) {
    if (error instanceof NondeterminismError) return { kind: "failed", error };
    throw error;
  }
}

/** The journal entry in a promise's parameter. */
export const entryIn = (data = ""): JournalEntry => parseStored(fromBase64(data)) as JournalEntry;

/** Cancels the simulated job and creates the task of its clean-up; false if the job had already finished. */
export async function cancelIn(sim: Simulation, now: number): Promise<boolean> {
  if (sim.get(JOB_NAME)?.state !== "pending") return false;
  await sim.start(cleanUpId(JOB_NAME), {}, now + 20 * CLEANUP_MS);
  sim.settle(JOB_NAME, "rejected_canceled");
  return sim.get(JOB_NAME)?.state === "rejected_canceled";
}

/** How many runs the simulated job has begun. */
export function runsIn(sim: Simulation): number {
  let runs = 1;
  while (sim.get(runId(JOB_NAME, runs + 1))) runs += 1;
  return runs;
}

/** The records of run number `runs` of the simulated job, in order. Default: the newest run. */
export function recordsIn(sim: Simulation, runs = runsIn(sim)): { n: number; id: string; event: JournalEntry }[] {
  const records = [];
  for (let n = 1, missing = 0; missing < 20; n++) {
    const id = journalEntryId(runId(JOB_NAME, runs), n);
    const promise = sim.get(id);
    missing = promise ? 0 : missing + 1;
    if (promise) records.push({ n, id, event: entryIn(promise.param.data) });
  }
  return records;
}

export class SimulatedJob {
  readonly clock = new TestClock();
  /** By how much the server's clock is ahead, in milliseconds. */
  skew = 0;
  readonly sim = new Simulation({ now: () => this.clock.now() + this.skew });
  /** The worker's code. A test may change it between executions. */
  code: Runnable;
  /** The worker's memory of the job. */
  journal = new Journal();
  hasNews = true;
  /** Awaited promises that always look pending to the worker. */
  readonly alwaysPending = new Set<string>();
  /** The cost of the last execution: requests to the server, and characters in both directions. */
  readonly cost = { requests: 0, characters: 0 };
  /** Aborts the current execution, as a worker does at the deadline and when the job is cancelled. */
  stop = new AbortController();
  readonly #args: unknown;
  readonly #runtime: Partial<Runtime>;
  readonly #deadline: number;
  #isCreated = false;
  readonly #settledPromises = new Map<string, PromiseRecord>();
  readonly #watchers = new Map<string, (promise: PromiseRecord) => void>();

  /** `deadline`: in milliseconds from now. Default: a year. */
  constructor(
    code: (ctx: never, args: never) => Promise<unknown>,
    {
      args = {},
      deadline = 365 * 86_400_000,
      ...runtime
    }: { args?: unknown; deadline?: number } & Partial<Omit<Runtime, "deadline">> = {},
  ) {
    this.code = code as Runnable;
    this.#args = args;
    this.#runtime = runtime;
    this.#deadline = deadline;
    this.sim.onSettled.add((promise) => this.#settledPromises.set(promise.id, promise));
  }

  /** Lets another worker continue that remembers nothing. */
  forget(): void {
    this.journal = new Journal();
  }

  /** Runs one execution while the clock advances. Undefined if there is nothing to do. */
  async execute(): Promise<ExecutionEnd | undefined> {
    if (!this.#isCreated) await this.sim.start(JOB_NAME, this.#args, this.clock.now() + this.#deadline + CLEANUP_MS);
    this.#isCreated = true;
    const leasedTask = await this.sim.acquire(JOB_NAME);
    if (!leasedTask) return undefined;
    Object.assign(this.cost, { requests: 0, characters: 0 });
    this.stop = new AbortController();
    const cancel = this.clock.after(leasedTask.promise.timeoutAt - this.clock.now(), () => this.stop.abort());
    const runtime = {
      signal: this.stop.signal,
      clock: this.clock,
      start: (job: { kind: string }) => this.startOther(job.kind),
      cancel: async (name: string) => void this.sim.settle(name, "rejected_canceled"),
      endChild: async (name: string) => void this.sim.settle(name, "rejected_canceled"),
      promiseOf: (name: string) => (name === "" ? undefined : name),
      ...this.#runtime,
    };
    const host = { journal: this.journal, send: this.#send, watch: this.#watch, runtime };
    const { end, journal } = await this.clock.until(execute(this.code, this.#args, leasedTask, host));
    cancel();
    this.journal = journal;
    if (end.kind === "blocked") this.sim.kill(JOB_NAME);
    return end;
  }

  /** Advances the clock until there is something to do, and runs the next execution. */
  async next(): Promise<ExecutionEnd> {
    for (;;) {
      const end = await this.execute();
      if (end) return end;
      const next = Math.min((this.sim.nextTimeout() ?? 0) - this.skew, this.clock.next ?? Number.POSITIVE_INFINITY);
      await this.clock.until(this.clock.pause(next - this.clock.now()));
    }
  }

  async toEnd(): Promise<ExecutionEnd> {
    for (;;) {
      const end = await this.next();
      if (end.kind !== "asleep") return end;
    }
  }

  /** Creates another job if it does not exist; returns its name. */
  async startOther(name: string): Promise<string> {
    if (!this.sim.get(name)) await this.sim.start(name, {}, this.clock.now() + this.#deadline);
    return name;
  }

  paths(): string[] {
    return recordsIn(this.sim).map(({ event }) => event.op);
  }

  answer(path: string, answer: unknown): void {
    for (const { id, event } of recordsIn(this.sim)) {
      if (event.kind === "ask" && event.op === path) this.sim.settle(id, "resolved", answer);
    }
  }

  /** Sends a value to a callback, as an outside system does, perhaps before the job waits for it. */
  async send(path: string, value: unknown): Promise<void> {
    const id = callbackOf(JOB_NAME, path);
    if (!this.sim.get(id)) await this.sim.send("promise.create", childOf(id, this.clock.now() + this.#deadline).data);
    this.sim.settle(id, "resolved", JSON.stringify(value));
  }

  #send: Send = (kind, data) => {
    const before = this.sim.characters;
    const answer = this.sim.send(kind, data);
    this.cost.requests += 1;
    this.cost.characters += this.sim.characters - before;
    return answer;
  };

  /** Subscribes to a promise once, as a worker does, and calls `notify` when it settles. */
  #watch: Watch = async (id, fresh, notify) => {
    if (this.alwaysPending.has(id)) return { ...(this.sim.get(id) as PromiseRecord), state: "pending" };
    const isNew = !this.#watchers.has(id);
    this.#watchers.set(id, notify);
    if (this.hasNews && isNew)
      this.sim.onSettled.add((promise) => promise.id === id && this.#watchers.get(id)?.(promise));
    const settledPromise = this.hasNews ? this.#settledPromises.get(id) : undefined;
    if (settledPromise || (this.hasNews && !isNew && !fresh)) return settledPromise ?? this.sim.get(id);
    this.cost.requests += 1;
    return this.sim.get(id);
  };
}
