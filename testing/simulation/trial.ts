/** One trial of a durable function in simulation, in which its worker dies as a plan says. */
import { toStored } from "../../core/author/index.ts";
import {
  type CallbackParam,
  type ExecutionEnd,
  Journal,
  type JournalEntry,
  LeaseLost,
  type Runnable,
  SETTLED,
  type Send,
  type Watch,
} from "../../core/engine/index.ts";
import { cleanUpId, decodeValue, type PromiseRecord, runId } from "../../core/resonate/index.ts";
import type { Dependencies, Plan } from "./plan.ts";
import { CLEANUP_MS, cancelIn, entryIn, execute, JOB_NAME, recordsIn, runsIn, SEED } from "./simulated-job.ts";
import { Simulation } from "./simulation.ts";
import { filesInMemory, stepFeatures } from "./step-features.ts";
import { CLOCK_START, type ProcessClock, TestClock } from "./test-clock.ts";

export interface TrialResult {
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
  /** The names of the jobs that it started to end with it. */
  children: readonly string[];
  /** The state of the promise of another job. */
  stateOf(job: string): PromiseRecord["state"] | undefined;
  /** In milliseconds of the simulated clock. */
  duration: number;
}

const TEN_YEARS_MS = 10 * 365 * 86_400_000;
const MAX_EXECUTIONS = 20_000;

/** How many calls of `ctx` a run of a job may make, unless its test says more. The limit is low to report endless loops early. */
const MAX_CALLS = 1_000;

/**
 * Creates the function that a worker runs, whose steps may use the worker's clock. The second argument says whether another
 * worker has taken the job over.
 */
type CreateFunction = (clock: ProcessClock, isTakenOver: () => boolean) => Runnable;

export const trial = (
  create: CreateFunction,
  args: unknown,
  dependencies: Dependencies,
  plan: Plan,
): Promise<TrialResult> => new Trial(create, args, dependencies, plan).toEnd();

class Trial {
  readonly #clock = new TestClock();
  readonly #sim = new Simulation(this.#clock);
  readonly #files = filesInMemory();
  readonly #create: CreateFunction;
  readonly #args: unknown;
  readonly #dependencies: Dependencies;
  readonly #plan: Plan;
  readonly #points: string[] = [];
  /** The promises whose answer is scheduled or has come. */
  readonly #answeredPromises = new Set<string>();
  readonly #onStep: ReturnType<NonNullable<Dependencies["inputs"]>> | undefined;
  /** The worker that is alive. */
  #worker: Worker;
  /** The task that the worker executes: the job's own, or that of its clean-up. */
  #task = JOB_NAME;
  #cancelledAt = 0;
  /** The names of the jobs that the job has started to end with it. */
  readonly #children = new Set<string>();

  constructor(create: CreateFunction, args: unknown, dependencies: Dependencies, plan: Plan) {
    this.#create = create;
    this.#args = args;
    this.#dependencies = dependencies;
    this.#plan = plan;
    this.#onStep = dependencies.inputs?.();
    this.#worker = this.#newWorker();
  }

  async toEnd(): Promise<TrialResult> {
    await this.#sim.start(
      JOB_NAME,
      this.#args,
      CLOCK_START + (this.#dependencies.deadline ?? TEN_YEARS_MS) + CLEANUP_MS,
    );
    for (const name of this.#dependencies.jobs ?? []) await this.#startJob(name);
    const { cancel } = this.#plan;
    if (cancel) this.#clock.after(cancel.after, () => void this.#cancel(cancel.noticeDelay));
    for (let executions = 0; executions < MAX_EXECUTIONS;) {
      const worker = this.#worker;
      const end = await this.#clock.until(Promise.race([this.#execute(worker), worker.exit.promise]));
      // Another worker continues, while this one still has work under way.
      if (end === "replaced") continue;
      if (end === "dead") {
        this.#sim.kill(this.#task);
        this.#worker = this.#newWorker();
      } else if (end === "nothing to do") {
        const storedEnd = this.#storedEnd();
        if (storedEnd) return this.#result(storedEnd);
        await this.#clock.until(this.#clock.pause(this.#untilNext()));
      } else {
        executions += 1;
        if (end !== "lease lost" && end.kind !== "asleep") return this.#result(end);
        if (!this.#plan.isWarm) worker.journal = new Journal();
      }
    }
    throw new Error(`the function has not finished in ${MAX_EXECUTIONS} executions`);
  }

  /** Cancels the job, and lets another worker begin its clean-up. */
  async #cancel(noticeDelay: number): Promise<void> {
    const worker = this.#worker;
    this.#cancelledAt = this.#clock.now();
    if (!(await cancelIn(this.#sim, this.#clock.now()))) return;
    this.#task = cleanUpId(JOB_NAME);
    this.#worker = this.#newWorker();
    worker.exit.resolve("replaced");
    worker.clock.after(noticeDelay, () => worker.stop?.abort(SETTLED));
  }

  /** Milliseconds until something is due here or on the server. */
  #untilNext(): number {
    const next = Math.min(this.#clock.next ?? Number.POSITIVE_INFINITY, this.#sim.nextTimeout() ?? 0);
    return next - this.#clock.now();
  }

  /** The outcome of the job as stored, for the case that the worker died after it had finished the job. */
  #storedEnd(): ExecutionEnd | undefined {
    const promise = this.#sim.get(this.#task);
    if (!promise || promise.state === "pending") return undefined;
    if (promise.state === "resolved") return { kind: "complete", value: decodeValue(promise.value) };
    const failure = promise.state === "rejected_timedout" ? new TimedOut(promise.state) : new Error(promise.state);
    return { kind: "failed", error: decodeValue(promise.value) ?? failure };
  }

  #newWorker(): Worker {
    return {
      clock: this.#clock.process(),
      journal: new Journal(),
      life: "alive",
      turns: new Map(),
      exit: Promise.withResolvers(),
    };
  }

  async #execute(worker: Worker): Promise<ExecutionEnd | "lease lost" | "nothing to do"> {
    const acquired = await this.#sim.acquire(this.#task);
    if (!acquired) return "nothing to do";
    const cancelled =
      this.#task === JOB_NAME ? undefined : { at: this.#cancelledAt, deadline: acquired.promise.timeoutAt };
    await this.#point(worker, "the lease", async () => {});
    const stop = new AbortController();
    worker.stop = stop;
    worker.clock.afterWork(acquired.promise.timeoutAt - this.#clock.now(), () => stop.abort());
    try {
      const { end, journal } = await execute(
        this.#create(worker.clock, () => worker !== this.#worker),
        this.#args,
        { ...acquired, ...(cancelled && { cleansUp: JOB_NAME }) },
        {
          journal: worker.journal,
          send: this.#sender(worker),
          watch: (id, _fresh, notify) => this.#watch(worker, id, notify),
          runtime: { ...this.#runtime(worker, stop.signal), ...(cancelled && { cancelled }) },
          ...(this.#plan.staysAwake && { suspend: (ids) => this.#wait(worker, ids) }),
        },
      );
      worker.journal = journal;
      return end;
    } catch (error) {
      if (error instanceof LeaseLost) return "lease lost";
      throw error;
    }
  }

  /** Waits for one of the promises for which the job would be suspended. */
  async #wait(worker: Worker, ids: readonly string[]): Promise<false> {
    const isPending = (id: string) => this.#sim.get(id)?.state === "pending";
    for (this.#sim.tick(); isPending(JOB_NAME) && ids.every(isPending); this.#sim.tick()) {
      await worker.clock.pause(this.#untilNext());
    }
    return false;
  }

  #runtime(worker: Worker, signal: AbortSignal): Parameters<typeof execute>[3]["runtime"] {
    const { env, errors, budget, events, nextArgs, nameOf, onAttempt, finishedSteps } = this.#dependencies;
    return {
      env,
      errors,
      budget,
      events,
      ...(nextArgs && { nextArgs }),
      signal,
      maxCalls: this.#dependencies.maxCalls ?? MAX_CALLS,
      ...(this.#onStep && { onStep: this.#onStep, awaitsSteps: true }),
      clock: worker.clock,
      start: async (job, args, options) => {
        const name = (await nameOf?.(job, args, options)) ?? job.kind;
        const isChild = options.whenParentEnds === "cancel";
        return inTurn(worker, name, async () => {
          if (isChild) await options.begin(name);
          return this.#point(worker, `the start of ${name}`, () => this.#startJob(name, isChild));
        });
      },
      endChild: (name) =>
        inTurn(worker, name, () => this.#point(worker, `the end of ${name}`, async () => this.#endChild(name))),
      cancel: async (name) => void this.#sim.settle(`other.${name}`, "rejected_canceled"),
      promiseOf: (name) => (name === "" ? undefined : `other.${name}`),
      steps: [
        ...stepFeatures({
          finishedSteps,
          fileStorage: this.#files,
          refusesCapturedState: this.#onStep !== undefined,
        }),
        {
          attempt: ({ path, step }, next) => {
            onAttempt?.(path, step.attempt);
            return this.#dependencies.isReal ? worker.clock.busy(next()) : next();
          },
        },
      ],
    };
  }

  #endChild(name: string): void {
    if (this.#children.has(name)) this.#sim.settle(`other.${name}`, "rejected_canceled");
  }

  async #startJob(name: string, isChild = false): Promise<string> {
    const id = `other.${name}`;
    // A worker would start the next generation.
    if (this.#children.has(name) && this.#sim.get(id)?.state === "rejected_canceled") this.#sim.forget(id);
    if (!this.#sim.get(id)) {
      if (isChild) this.#children.add(name);
      else this.#children.delete(name);
      const isOrphan = isChild && this.#sim.get(JOB_NAME)?.state.startsWith("rejected");
      await this.#sim.start(id, {}, this.#clock.now() + TEN_YEARS_MS);
      // A worker that executes it finds that the job which started it has ended.
      if (isOrphan) this.#endChild(name);
      const outcome = this.#dependencies.job?.(name);
      if (outcome) {
        const { after, result, error } = outcome;
        this.#clock.after(after, () => this.#sim.settle(id, error ? "rejected" : "resolved", error ?? result));
      }
    }
    return name;
  }

  #sender(worker: Worker): Send {
    return (kind, data) =>
      this.#point(worker, purposeOf(kind, data), async () => {
        const answer = await this.#sim.send(kind, data);
        this.#scheduleAnswer(data);
        return answer;
      });
  }

  /** Schedules the answer to a question, or the value for a callback, when its promise is created. */
  #scheduleAnswer(data: object): void {
    const { action } = data as { action?: { data?: { id?: string } } };
    const id = action?.data?.id;
    const promise = id === undefined || this.#answeredPromises.has(id) ? undefined : this.#sim.get(id);
    if (!id || promise?.state !== "pending" || !promise.param.data) return;
    const event = entryIn(promise.param.data) as JournalEntry | CallbackParam;
    const reply = this.#replyTo(event);
    if (!reply) return;
    this.#answeredPromises.add(id);
    this.#clock.after(reply.after, () => this.#sim.settle(id, "resolved", reply.answer));
  }

  #replyTo(event: JournalEntry | CallbackParam): { after: number; answer: unknown } | undefined {
    if ("callback" in event) {
      const sent = this.#dependencies.callback?.(event.callback);
      return sent && { after: sent.after, answer: JSON.stringify(sent.value) };
    }
    return event.kind === "ask" ? this.#dependencies.answer?.(event.op, event.question) : undefined;
  }

  /** Sends a request, at which the worker may die. */
  async #point<T>(worker: Worker, purpose: string, request: () => Promise<T>): Promise<T> {
    const never = new Promise<never>(() => {});
    const latency = this.#plan.latency ?? (() => 0);
    const isDead = () => worker.life === "dead";
    if (isDead()) return never;
    const n = this.#points.push(purpose);
    const how = this.#plan.deaths.find(({ at }) => at === n)?.how;
    const delayThere = latency();
    if (delayThere > 0) await worker.clock.pause(delayThere);
    if (how === "before") this.#kill(worker);
    if (how === "alone") {
      worker.life = "dying";
      this.#clock.after(4 * (delayThere + 10), () => this.#kill(worker));
      return never;
    }
    if (isDead()) return never;
    const answer = await request();
    if (how === "after") this.#kill(worker);
    const delayBack = latency();
    if (delayBack > 0) await worker.clock.pause(delayBack);
    return worker.life === "alive" ? answer : never;
  }

  #kill(worker: Worker): void {
    worker.life = "dead";
    worker.clock.stop();
    worker.exit.resolve("dead");
  }

  async #watch(worker: Worker, id: string, notify: Parameters<Watch>[2]) {
    if (this.#plan.hasNews !== false) {
      this.#sim.onSettled.add((promise) => {
        if (promise.id === id && worker.life === "alive") notify(promise);
      });
    }
    return this.#sim.get(id);
  }

  #result(outcome: ExecutionEnd): TrialResult {
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
        seed: seedIn(this.#sim.get(runId(JOB_NAME, i + 1))) ?? SEED,
        records: recordsIn(this.#sim, i + 1),
      })),
      isCancelled: this.#task !== JOB_NAME,
      children: [...this.#children],
      stateOf: (job) => this.#sim.get(`other.${job}`)?.state,
      duration: this.#clock.now() - CLOCK_START,
    };
  }
}

/** The server has timed the job out. */
class TimedOut extends Error {}

interface Worker {
  clock: ProcessClock;
  journal: Journal;
  /** A dying worker's requests that are under way still arrive. */
  life: "alive" | "dying" | "dead";
  /** The newest start or end of each other job. */
  turns: Map<string, Promise<unknown>>;
  /** Resolves when the worker is dead, or another one has the job because of a cancellation. */
  exit: PromiseWithResolvers<"dead" | "replaced">;
  stop?: AbortController;
}

/** Starts and ends a job in the order in which that is requested, as a worker does. */
function inTurn<T>({ turns }: Worker, name: string, request: () => Promise<T>): Promise<T> {
  const turn = (turns.get(name) ?? Promise.resolve()).then(request);
  turns.set(
    name,
    turn.catch(() => {}),
  );
  return turn;
}

/** The seed of a run's random values. */
const seedIn = (run: PromiseRecord | undefined): string | undefined =>
  (run && (decodeValue(run.param) as { seed?: string } | undefined))?.seed;

function purposeOf(kind: string, data: object): string {
  const { action, id } = data as {
    action?: { kind: string; data: { id: string; param?: { data?: string } } };
    id?: string;
  };
  if (kind === "task.fence" && action?.data.param?.data) {
    const event: Partial<JournalEntry> | null = entryIn(action.data.param.data);
    return event?.op === undefined ? `promise ${action.data.id}` : `record of ${event.kind} "${event.op}"`;
  }
  if (kind === "promise.get") return `a read of ${id}`;
  return kind === "task.suspend" ? "the suspension" : "the result of the job";
}
