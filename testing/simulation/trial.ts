/** One trial of a durable function in simulation, in which its worker dies as a plan says. */
import { createHash } from "node:crypto";
import type { Budgets, ErrorClass, Question } from "../../core/author/context.ts";
import type { EventDefinition } from "../../core/author/event.ts";
import { toStored } from "../../core/author/values.ts";
import { Journal, type JournalEntry, type JournalRecord } from "../../core/engine/journal.ts";
import type { Send, Watch } from "../../core/engine/lease/lease.ts";
import type { CallbackParam } from "../../core/engine/replay/commands/command.ts";
import { type ExecutionEnd, LeaseLost, type Runnable, SETTLED } from "../../core/engine/runtime.ts";
import { fromBase64 } from "../../core/resonate/base64.ts";
import { decodeValue } from "../../core/resonate/codec.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import { cleanUpId, runId } from "../../core/resonate/ids.ts";
import { KeptFiles } from "../../features/files/kept-files.ts";
import { memoryStore } from "./memory-store.ts";
import { CLEANUP, cancelIn, entryIn, execute, JOB, recordsIn, runsIn, SEED } from "./simulated-job.ts";
import { Simulation } from "./simulation.ts";
import { stepFeatures } from "./step-features.ts";
import { BEGIN, type ProcessClock, TestClock } from "./test-clock.ts";

/** A death of the worker at a request to the server. Requests are counted from 1 over the whole trial. */
export interface Death {
  at: number;
  /**
   * `before` the request arrives, `after` the server has answered it but before the answer arrives, or `alone`: this request gets
   * lost, while the others under way arrive.
   */
  how: "before" | "after" | "alone";
}

export interface Plan {
  deaths: readonly Death[];
  /** Whether the surviving worker continues the job with its memory. Otherwise it has forgotten the job. */
  isWarm: boolean;
  /** Whether the worker waits instead of letting the job sleep, so that it never runs the function again. */
  staysAwake?: boolean;
  /** How long requests take in each direction, in milliseconds. Default: 0. */
  latency?: () => number;
  /** Whether notifications about awaited promises arrive. Default: true. */
  hasNews?: boolean;
  /** Cancels the job `after` so many milliseconds; the worker that runs it `hears` of that so many milliseconds later. */
  cancel?: { after: number; hears: number };
}

/** The world around the job. Times are in milliseconds. */
export interface World {
  env?: unknown;
  errors?: readonly ErrorClass[] | undefined;
  budget?: Budgets | undefined;
  events?: readonly EventDefinition[] | undefined;
  /** Whether steps wait for more than the worker's clock. Then the clock stands still while they make progress. */
  isReal?: boolean;
  /** How long the job may take. Default: 10 years. */
  deadline?: number;
  /** The answer to a question, and how long it takes. */
  answer?(name: string, question: Question | undefined): { after: number; answer: unknown } | undefined;
  /** The value sent to a callback, and how long that takes. */
  callback?(path: string): { after: number; value: unknown } | undefined;
  /** See {@link Runtime.nextArgs}. */
  nextArgs?(args: unknown): unknown;
  nameOf?(job: { kind: string }, args: unknown): Promise<string>;
  /** The outcome of another job, and how long the job takes. */
  job?(name: string): { after: number; result?: unknown; error?: Error } | undefined;
  /** The records of the steps that an earlier attempt at the job has finished, by their paths. */
  finished?: ReadonlyMap<string, JournalRecord>;
  /** Other jobs that exist from the beginning. */
  jobs?: readonly string[];
  /** Makes, for each trial, a function that says what is wrong with a step: see {@link Runtime.onStep}. */
  inputs?(): (path: string, fn: object) => string | undefined;
  onAttempt?(step: string, attempt: number): void;
}

export interface TrialEnd {
  outcome: ExecutionEnd["kind"];
  value?: unknown;
  error?: { name: string; message: string };
  /** Whether the job failed because its deadline came. */
  isTimedOut: boolean;
  /** How many requests were sent to the server. The worker may die at each. */
  requests: number;
  /** The purpose of each request, in words. */
  points: string[];
  records: { n: number; event: JournalEntry }[];
  /** The seed and the records of each of the job's runs. */
  runs: { seed: string; records: { n: number; event: JournalEntry }[] }[];
  /** Whether the job was cancelled. If so, the outcome is that of its clean-up. */
  isCancelled: boolean;
  /** The state of the promise of another job. */
  stateOf(job: string): PromiseRecord["state"] | undefined;
  took: number;
}

const TEN_YEARS = 10 * 365 * 86_400_000;
const MOST_EXECUTIONS = 20_000;

/** How many calls of `ctx` a run of a job may make. The limit is low to report endless loops early. */
const MOST_CALLS = 1_000;

/**
 * Makes the function that a worker runs, whose steps may use the worker's clock. The second argument tells whether another
 * worker has taken the job over.
 */
type Make = (clock: ProcessClock, isTakenOver: () => boolean) => Runnable;

export const trial = (make: Make, args: unknown, world: World, plan: Plan): Promise<TrialEnd> =>
  new Trial(make, args, world, plan).toEnd();

class Trial {
  readonly #clock = new TestClock();
  readonly #sim = new Simulation(this.#clock);
  readonly #files = new KeptFiles({ objects: memoryStore(), hash: hashOfFile });
  readonly #make: Make;
  readonly #args: unknown;
  readonly #world: World;
  readonly #plan: Plan;
  readonly #points: string[] = [];
  readonly #asked = new Set<string>();
  readonly #onStep: ReturnType<NonNullable<World["inputs"]>> | undefined;
  /** The worker that is alive. */
  #worker: Worker;
  /** The task that the worker executes: the job's own, or that of its clean-up. */
  #task = JOB;
  #cancelledAt = 0;

  constructor(make: Make, args: unknown, world: World, plan: Plan) {
    this.#make = make;
    this.#args = args;
    this.#world = world;
    this.#plan = plan;
    this.#onStep = world.inputs?.();
    this.#worker = this.#newWorker();
  }

  async toEnd(): Promise<TrialEnd> {
    await this.#sim.start(JOB, this.#args, BEGIN + (this.#world.deadline ?? TEN_YEARS) + CLEANUP);
    for (const name of this.#world.jobs ?? []) await this.#startJob(name);
    const { cancel } = this.#plan;
    if (cancel) this.#clock.after(cancel.after, () => void this.#cancel(cancel.hears));
    for (let executions = 0; executions < MOST_EXECUTIONS; ) {
      const worker = this.#worker;
      const end = await this.#clock.until(Promise.race([this.#execute(worker), worker.gone.promise]));
      // Another worker goes on, while this one still has work under way.
      if (end === "passed") continue;
      if (end === "dead") {
        this.#sim.kill(this.#task);
        this.#worker = this.#newWorker();
      } else if (end === "nothing to do") {
        const settled = this.#settled();
        if (settled) return this.#end(settled);
        await this.#clock.until(this.#clock.pause(this.#untilNext()));
      } else {
        executions += 1;
        if (end !== "left" && end.kind !== "asleep") return this.#end(end);
        if (!this.#plan.isWarm) worker.journal = new Journal();
      }
    }
    throw new Error(`the function has not ended in ${MOST_EXECUTIONS} executions`);
  }

  /** Cancels the job, and lets another worker begin its clean-up. */
  async #cancel(hears: number): Promise<void> {
    const worker = this.#worker;
    this.#cancelledAt = this.#clock.now();
    if (!(await cancelIn(this.#sim, this.#clock.now()))) return;
    this.#task = cleanUpId(JOB);
    this.#worker = this.#newWorker();
    worker.gone.resolve("passed");
    worker.clock.after(hears, () => worker.stop?.abort(SETTLED));
  }

  /** Milliseconds until something is due here or on the server. */
  #untilNext(): number {
    const next = Math.min(this.#clock.next ?? Number.POSITIVE_INFINITY, this.#sim.nextTimeout() ?? 0);
    return next - this.#clock.now();
  }

  /** The outcome of the job as stored, for the case that the worker died after it had ended the job. */
  #settled(): ExecutionEnd | undefined {
    const promise = this.#sim.get(this.#task);
    if (!promise || promise.state === "pending") return undefined;
    const { data } = promise.value;
    if (promise.state === "resolved")
      return { kind: "complete", value: data ? JSON.parse(fromBase64(data)) : undefined };
    const ended = promise.state === "rejected_timedout" ? new TimedOut(promise.state) : new Error(promise.state);
    return { kind: "failed", error: decodeValue(promise.value) ?? ended };
  }

  #newWorker(): Worker {
    return {
      clock: this.#clock.process(),
      journal: new Journal(),
      life: "alive",
      gone: Promise.withResolvers(),
    };
  }

  async #execute(worker: Worker): Promise<ExecutionEnd | "left" | "nothing to do"> {
    const acquired = await this.#sim.acquire(this.#task);
    if (!acquired) return "nothing to do";
    const cancelled = this.#task === JOB ? undefined : { at: this.#cancelledAt, deadline: acquired.promise.timeoutAt };
    await this.#point(worker, "the lease", async () => {});
    const stop = new AbortController();
    worker.stop = stop;
    worker.clock.afterWork(acquired.promise.timeoutAt - this.#clock.now(), () => stop.abort());
    try {
      const { end, journal } = await execute(
        this.#make(worker.clock, () => worker !== this.#worker),
        this.#args,
        { ...acquired, ...(cancelled && { cleansUp: JOB }) },
        {
          journal: worker.journal,
          send: this.#sender(worker),
          watch: (id, _fresh, tell) => this.#watch(worker, id, tell),
          runtime: { ...this.#runtime(worker, stop.signal), ...(cancelled && { cancelled }) },
          ...(this.#plan.staysAwake && { suspend: (ids) => this.#wait(worker, ids) }),
        },
      );
      worker.journal = journal;
      return end;
    } catch (error) {
      if (error instanceof LeaseLost) return "left";
      throw error;
    }
  }

  /** Waits for one of the promises for which the job would be suspended. */
  async #wait(worker: Worker, ids: readonly string[]): Promise<false> {
    const isPending = (id: string) => this.#sim.get(id)?.state === "pending";
    for (this.#sim.tick(); isPending(JOB) && ids.every(isPending); this.#sim.tick()) {
      await worker.clock.pause(this.#untilNext());
    }
    return false;
  }

  #runtime(worker: Worker, signal: AbortSignal): Parameters<typeof execute>[3]["runtime"] {
    const { env, errors, budget, events, nextArgs, nameOf, onAttempt, finished } = this.#world;
    return {
      env,
      errors,
      budget,
      events,
      ...(nextArgs && { nextArgs }),
      signal,
      maxCalls: MOST_CALLS,
      ...(this.#onStep && { onStep: this.#onStep, awaitsSteps: true }),
      clock: worker.clock,
      start: async (job, args) => this.#startJob((await nameOf?.(job, args)) ?? job.kind),
      cancel: async (name) => void this.#sim.settle(`other.${name}`, "rejected_canceled"),
      promiseOf: (name) => (name === "" ? undefined : `other.${name}`),
      steps: [
        ...stepFeatures({ finished, kept: this.#files }),
        {
          attempt: ({ path, step }, next) => {
            onAttempt?.(path, step.attempt);
            return this.#world.isReal ? worker.clock.busy(next()) : next();
          },
        },
      ],
    };
  }

  async #startJob(name: string): Promise<string> {
    const id = `other.${name}`;
    if (!this.#sim.get(id)) {
      await this.#sim.start(id, {}, this.#clock.now() + TEN_YEARS);
      const outcome = this.#world.job?.(name);
      if (outcome) {
        const { after, result, error } = outcome;
        this.#clock.after(after, () => this.#sim.settle(id, error ? "rejected" : "resolved", error ?? result));
      }
    }
    return name;
  }

  #sender(worker: Worker): Send {
    return (kind, data) =>
      this.#point(worker, wordsFor(kind, data), async () => {
        const answer = await this.#sim.send(kind, data);
        this.#answer(data);
        return answer;
      });
  }

  /** Schedules the answer to a question, or the value for a callback, when its promise is created. */
  #answer(data: object): void {
    const { action } = data as { action?: { data?: { id?: string } } };
    const id = action?.data?.id;
    const promise = id === undefined || this.#asked.has(id) ? undefined : this.#sim.get(id);
    if (!id || promise?.state !== "pending" || !promise.param.data) return;
    const event = entryIn(promise.param.data) as JournalEntry | CallbackParam;
    const sent = "callback" in event ? this.#world.callback?.(event.callback) : undefined;
    const asked = "op" in event && event.kind === "ask" ? this.#world.answer?.(event.op, event.question) : undefined;
    const given = sent ? { after: sent.after, answer: JSON.stringify(sent.value) } : asked;
    if (!given) return;
    this.#asked.add(id);
    this.#clock.after(given.after, () => this.#sim.settle(id, "resolved", given.answer));
  }

  /** Makes a request, at which the worker may die. */
  async #point<T>(worker: Worker, what: string, request: () => Promise<T>): Promise<T> {
    const never = new Promise<never>(() => {});
    const latency = this.#plan.latency ?? (() => 0);
    const isDead = () => worker.life === "dead";
    if (isDead()) return never;
    const n = this.#points.push(what);
    const how = this.#plan.deaths.find(({ at }) => at === n)?.how;
    const way = latency();
    if (way > 0) await worker.clock.pause(way);
    if (how === "before") this.#kill(worker);
    if (how === "alone") {
      worker.life = "dying";
      this.#clock.after(4 * (way + 10), () => this.#kill(worker));
      return never;
    }
    if (isDead()) return never;
    const answer = await request();
    if (how === "after") this.#kill(worker);
    const back = latency();
    if (back > 0) await worker.clock.pause(back);
    return worker.life === "alive" ? answer : never;
  }

  #kill(worker: Worker): void {
    worker.life = "dead";
    worker.clock.stop();
    worker.gone.resolve("dead");
  }

  async #watch(worker: Worker, id: string, tell: Parameters<Watch>[2]) {
    if (this.#plan.hasNews !== false) {
      this.#sim.onSettled.add((promise) => {
        if (promise.id === id && worker.life === "alive") tell(promise);
      });
    }
    return this.#sim.get(id);
  }

  #end(outcome: ExecutionEnd): TrialEnd {
    const { kind } = outcome;
    const stored = kind === "failed" ? toStored(outcome.error) : undefined;
    const blocked = kind === "blocked" ? { name: "Blocked", message: outcome.reason } : undefined;
    const error = stored ?? blocked;
    const isTimedOut = stored?.name === "DeadlineExceeded" || (kind === "failed" && outcome.error instanceof TimedOut);
    return {
      outcome: kind,
      ...(kind === "complete" && { value: outcome.value }),
      ...(error && { error: { name: error.name, message: error.message } }),
      isTimedOut,
      requests: this.#points.length,
      points: this.#points,
      records: recordsIn(this.#sim),
      runs: Array.from({ length: runsIn(this.#sim) }, (_, i) => ({
        seed: seedIn(this.#sim.get(runId(JOB, i + 1))) ?? SEED,
        records: recordsIn(this.#sim, i + 1),
      })),
      isCancelled: this.#task !== JOB,
      stateOf: (job) => this.#sim.get(`other.${job}`)?.state,
      took: this.#clock.now() - BEGIN,
    };
  }
}

/** The server has ended the job at its deadline. */
class TimedOut extends Error {}

interface Worker {
  clock: ProcessClock;
  journal: Journal;
  /** A dying worker's requests that are under way still arrive. */
  life: "alive" | "dying" | "dead";
  /** Resolves when the worker is dead, or its job has passed to another one by a cancellation. */
  gone: PromiseWithResolvers<"dead" | "passed">;
  stop?: AbortController;
}

/** The seed of a run's random values. */
const seedIn = (run: PromiseRecord | undefined): string | undefined =>
  (run && (decodeValue(run.param) as { seed?: string } | undefined))?.seed;

function wordsFor(kind: string, data: object): string {
  const { action, id } = data as {
    action?: { kind: string; data: { id: string; param?: { data?: string } } };
    id?: string;
  };
  if (kind === "task.fence" && action?.data.param?.data) {
    const event: Partial<JournalEntry> | null = entryIn(action.data.param.data);
    return event?.op === undefined ? `promise ${action.data.id}` : `record of ${event.kind} "${event.op}"`;
  }
  if (kind === "promise.get") return `a look at ${id}`;
  return kind === "task.suspend" ? "the suspension" : "the end of the job";
}

function hashOfFile() {
  const hash = createHash("sha256");
  return { update: (bytes: Uint8Array) => void hash.update(bytes), digest: () => hash.digest("hex") };
}
