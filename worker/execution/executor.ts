import type * as z from "zod";
import { type Implementation, nextArgs } from "../../core/author/implement.ts";
import { type Log, NondeterminismError } from "../../core/definitions/context.ts";
import { type Job, REQUEST_TAG } from "../../core/definitions/job.ts";
import { traceIdIn } from "../../core/definitions/trace-context.ts";
import { machineClock } from "../../core/engine/clock.ts";
import { Execution, LeaseLost, type Runtime } from "../../core/engine/execution.ts";
import { Journal } from "../../core/engine/journal.ts";
import { JobFull, type Send, TaskLease } from "../../core/engine/lease/lease.ts";
import { nameIn } from "../../core/engine/replay/commands/commands.ts";
import { stepsToKeep } from "../../core/engine/resume.ts";
import { beginRun, readNewest } from "../../core/engine/runs.ts";
import { type JobEnd, SETTLED } from "../../core/engine/runtime.ts";
import { words } from "../../core/engine/steps/attempt.ts";
import { ownerOf, type Resumption } from "../../core/jobs/durable-promise.ts";
import { attemptFiles, type FetchPublic } from "../../core/jobs/files/attempt-files.ts";
import type { KeptFiles } from "../../core/jobs/files/kept-files.ts";
import type { RemoteStore } from "../../core/jobs/remote-store.ts";
import { AFTER } from "../../core/jobs/starting/after.ts";
import { turnOf } from "../../core/jobs/starting/order.ts";
import { CLEANED_UP, decodeValue, EARLIER, encodeValue, STARTER } from "../../core/store/codec.ts";
import type { ResonateClient } from "../../core/store/connection/client.ts";
import { ResonateRefused } from "../../core/store/connection/failures.ts";
import type { Acquired, LeaseRef, OperationKind, PromiseRecord } from "../../core/store/connection/protocol.ts";
import type { ServerRules } from "../../core/store/connection/server-rules.ts";
import { isLate } from "../../core/store/deadline.ts";
import { resumptionId, runId, splitKey } from "../../core/store/ids.ts";
import { pause } from "../../core/store/pacing/backoff.ts";
import type { PromiseWatcher } from "../intake/promise-watcher.ts";
import { type CallbackUrl, callbackUrls } from "./callback-urls.ts";
import { ChildJobs, startedIn } from "./child-jobs.ts";
import { codeFor, environmentsOf, type FoundCode } from "./code.ts";
import { suspendCrashLoop } from "./crash-loop-pause.ts";
import { conclude, type Ending, type JobExecution } from "./ending.ts";
import type { Heartbeat } from "./heartbeat.ts";
import { type Instruments, type LineLog, type Reports, reasonOf, thrown } from "./instruments.ts";
import { type CachedJob, JournalCache } from "./journal-cache.ts";
import { Limits } from "./limits.ts";
import { Reporter } from "./reporter.ts";
import { SettlementWatch } from "./settlement-watch.ts";

interface ExecutorOptions {
  implementations: readonly Implementation[];
  /** The variables that the implementations read; checked when the executor is made. */
  env: Readonly<Record<string, string | undefined>>;
  /** Undefined where no place for files is set. */
  files: KeptFiles | undefined;
  /** Undefined where nothing guards private addresses. */
  fetchPublic: FetchPublic | undefined;
  client: ResonateClient;
  store: RemoteStore;
  watcher: PromiseWatcher;
  rules: ServerRules;
  heartbeat: Heartbeat;
  /** In milliseconds. */
  lease: number;
  /** The bound on the journals of sleeping jobs in memory, in bytes. */
  maxJournalSize?: number | undefined;
  namespace: string;
  nameOf(id: string): string;
  log: LineLog;
  instruments: Instruments;
  reports?: Reports | undefined;
}

/** Aborts what is still under way when an execution has ended. One instance, because each new one captures a stack. */
const ENDED = new DOMException("the job is no longer run here", "AbortError");

const LAPSED = "its lease had lapsed";

/** Why a job goes on nowhere: every worker would get the same answer. */
const REFUSES = "the Resonate server refuses the request";

/** The longest a Node timer can wait, in milliseconds. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** A task that was acquired, with its promise and the records that came with it. */
type AcquiredTask = Pick<Acquired, "task" | "promise"> & Partial<Acquired> & { cleansUp?: string };

/** How many jobs that earlier runs started and did not await a run gives up with itself; others see it when they next run. */
const MOST_CHILDREN = 100;

/** How soon a job is cancelled whose clean-up was created by a caller that then did not cancel it, in milliseconds. */
const TIME_TO_CANCEL = 5_000;

/** Executes the tasks of jobs, each apart from the others. */
export class Executor {
  readonly #options: ExecutorOptions;
  readonly #heartbeat: Heartbeat;
  readonly #cache: JournalCache;
  readonly #childJobs: ChildJobs;
  readonly #environments: ReadonlyMap<z.ZodType, unknown>;
  readonly #limits: Limits;
  readonly #callbackUrl: CallbackUrl | undefined;

  /** @throws {Error} naming the variables that an implementation needs and the environment lacks */
  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#heartbeat = options.heartbeat;
    this.#cache = new JournalCache(options.maxJournalSize);
    this.#environments = environmentsOf(options.implementations, options.env);
    this.#limits = new Limits({ ...options, patience: options.lease }, options.namespace);
    this.#childJobs = new ChildJobs(options);
    this.#callbackUrl = callbackUrls(options.env);
  }

  /** See {@link JournalCache.recordsWanted}. */
  recordsWanted(dispatch: LeaseRef): number | undefined {
    return this.#cache.recordsWanted(dispatch);
  }

  codeFor(promise: PromiseRecord): FoundCode | undefined {
    return codeFor(promise, this.#options.implementations);
  }

  /**
   * Runs a task until its job has ended or sleeps, and keeps the lease alive. Never rejects: a job that cannot go on here is
   * left, and the server dispatches it again when its lease has lapsed. `kind` is the kind of job.
   */
  async execute(acquired: AcquiredTask, found: FoundCode, kind: string): Promise<void> {
    const { task, promise } = acquired;
    const { id, tags } = promise;
    const job = this.#options.nameOf(id);
    const request = tags[REQUEST_TAG];
    const starter = tags[STARTER];
    const isChild = starter !== undefined && splitKey(starter).name !== "";
    const { instruments } = this.#options;
    const parent = instruments.spanOf(promise);
    const log = this.#options.log.child({
      job,
      ...(request !== undefined && { request_id: request }),
      ...(isChild && { started_by: starter }),
      ...(parent !== undefined && { trace_id: traceIdIn(parent) }),
    });
    const attributes = {
      "messaging.system": "resonate",
      "messaging.operation.type": "process",
      "messaging.operation.name": "process",
      "messaging.destination.name": tags["resonate:target"]?.split("@")[1] ?? "",
      "messaging.message.id": id,
      job,
      "task.version": task.version,
    };
    await instruments.inSpan(
      `job ${kind}`,
      { attributes, kind: "consumer", parent },
      async () => {
        this.#heartbeat.start(task);
        const run = found === AFTER ? this.#cleanUp(acquired, log) : this.#run(acquired, found, kind, log);
        return run.finally(() => this.#heartbeat.stop(task));
      },
      (outcome) => ({ outcome }),
    );
  }

  /** Runs the job's function until the deadline, unless the job has been given up. */
  async #run(acquired: AcquiredTask, found: Exclude<FoundCode, string>, kind: string, log: LineLog): Promise<Ending> {
    const { task, promise } = acquired;
    if (await this.#childJobs.isGivenUp(promise)) {
      log.info({ reason: "the job that started it was cancelled" }, "job left");
      return "left";
    }
    const figures = this.#options.reports?.figures;
    const job = this.#options.nameOf(promise.id);
    if (task.version === 1) log.info(expectedEnd(found), "job started");
    else log.debug({ version: task.version }, "job continued");
    if (task.version === 1) figures?.count(kind, "started");
    else figures?.goesOn(job, kind);
    const stop = new AbortController();
    const timeLeft = Math.min(Math.max(promise.timeoutAt - Date.now(), 0), LONGEST_TIMER);
    const deadline = setTimeout(() => {
      log.warn("job still running at its deadline");
      stop.abort();
    }, timeLeft);
    let reporter: Reporter | undefined;
    try {
      const lease = this.#leaseOn(acquired);
      const cached = await this.#journalOf(acquired, lease, log);
      if (cached.journal.last === 0 && !cached.journal.run && (await this.#waitsForCleanUp(promise, lease)))
        return "asleep";
      const newestEntry = task.version === 1 ? { n: 0, text: "", at: 0 } : cached.newestEntry;
      reporter = new Reporter(this.#options.store.feeds, promise, newestEntry, log);
      return await this.#replay({ acquired, lease, cached, reporter, kind, job, log }, found, stop);
    } catch (error) {
      const isSettled = stop.signal.reason === SETTLED;
      const isRefused = error instanceof LeaseLost && error.message.includes("answered 4");
      const isLost = isSettled || isRefused || reasonOf(error) === LAPSED;
      if (isLost) this.#options.instruments.leaseLost(kind);
      const reason = reasonOf(error);
      if (reason.startsWith(REFUSES)) {
        log.error({ reason }, "job blocked");
        figures?.waits({ job, kind, state: "blocked", says: reason });
        await reporter?.blocked(reason).catch(() => {});
        return "blocked";
      }
      log.info({ reason: isSettled ? SETTLED : reasonOf(error) }, "job left");
      return "left";
    } finally {
      clearTimeout(deadline);
      stop.abort(ENDED);
    }
  }

  /** One execution: the function runs over its journal, and on from there. @throws {LeaseLost} */
  async #replay(execution: JobExecution, found: Exclude<FoundCode, string>, stop: AbortController): Promise<Ending> {
    const { seed, cleanup, storage, implementation } = found;
    const { acquired, cached, reporter } = execution;
    const { task, promise } = acquired;
    const { store, watcher, instruments, reports } = this.#options;
    const isContinued = cached.journal.version === task.version - 1;
    if (!isContinued && (await suspendCrashLoop(execution, store.feeds))) return "blocked";
    const { concurrency } = implementation.job;
    if (concurrency && !cached.journal.run && cached.journal.events.length === 0) {
      const end = await this.#takeTurn(execution, concurrency.limit);
      if (end) return conclude(end, execution, { cache: this.#cache, instruments, reports });
    }
    const settlement = new SettlementWatch(promise.id, watcher, stop);
    const children: string[] = [];
    const about = { stop, settlement, children, seed, cleanup, storage };
    const runtime = this.#runtime(execution, implementation, about);
    try {
      const outcome = await this.#throughRuns(execution, found, runtime, children).catch((error): JobEnd => {
        if (error instanceof JobFull) return { kind: "failed", error };
        throw error;
      });
      const ending = await conclude(outcome, execution, { cache: this.#cache, instruments, reports });
      if (outcome.kind === "failed" && isLate(outcome.error))
        await this.#childJobs.giveUpIfEnded(promise.id, startedIn(cached.journal));
      return ending;
    } catch (error) {
      // The journal may lack the last child job.
      if (error instanceof LeaseLost) await this.#childJobs.giveUpIfEnded(promise.id, children);
      throw error;
    } finally {
      settlement.close();
      reporter.close();
    }
  }

  /** Executes the newest run of a job, and those that follow from it, until one ends otherwise. @throws {LeaseLost} */
  async #throughRuns(
    { lease, cached, log }: JobExecution,
    { code, args, implementation }: Exclude<FoundCode, string>,
    runtime: Runtime,
    children: string[],
  ): Promise<JobEnd> {
    const { job } = implementation;
    for (;;) {
      const { run } = cached.journal;
      const own = run ? implementation.versionOf(run.version) : code;
      if (!own)
        return {
          kind: "blocked",
          reason: `run ${run?.n} began with version ${run?.version}, of which no code is here`,
        };
      // Steps of the attempt before are those of the run in which this one began.
      const { memo: _, ...later } = runtime;
      const ofRun = run ? { ...later, run, seed: run.seed, startedAt: run.startedAt } : runtime;
      const given = run ? run.args : "args" in cached ? cached.args : args;
      const outcome = await new Execution(own as never, given, cached.journal, lease, ofRun).run();
      if (outcome.kind !== "continued") return outcome;
      const { carried: before } = outcome;
      const left = [...(run?.children ?? []), ...startedIn(cached.journal)].filter((name) => {
        const id = runtime.promiseOf(name);
        return id === undefined || !cached.journal.elsewhere(id);
      });
      const next = { args: outcome.args, version: job.version, before, children: left.slice(-MOST_CHILDREN) };
      cached.journal = await beginRun(cached.journal, lease, next);
      lease.counted = cached.journal;
      delete cached.memo;
      children.splice(0, children.length, ...next.children);
      log.info({ run: cached.journal.run?.n }, "job continued");
    }
  }

  /** Waits for a job's turn among those with its key; undefined when it has it. @throws {LeaseLost} */
  async #takeTurn({ acquired, lease, reporter }: JobExecution, limit: number): Promise<JobEnd | undefined> {
    const { promise } = acquired;
    for (;;) {
      const ahead = await turnOf(promise, limit, lease, Date.now());
      if (ahead === "now") return undefined;
      if (ahead === "late") {
        const words = "its start took so long that later jobs have passed it: start it again";
        return { kind: "failed", error: new Error(words) };
      }
      reporter.tell({
        steps: [],
        awaiting: ahead.length,
        callbacks: [],
        questions: [],
        progress: { message: "waiting for its turn" },
      });
      await reporter.beforeSleep({ quiet: false, patience: this.#options.lease });
      if (await lease.suspend(ahead)) return { kind: "asleep" };
    }
  }

  /** What this worker gives to the execution of a job. */
  #runtime(
    { acquired, cached, reporter, kind, log }: JobExecution,
    { env, job }: Implementation,
    about: {
      stop: AbortController;
      settlement: SettlementWatch;
      children: string[];
      seed: string | undefined;
      cleanup: number;
      storage: number;
    },
  ): Runtime {
    const { task, promise } = acquired;
    const { store, instruments, reports, nameOf, lease: patience } = this.#options;
    const { settlement, children, storage } = about;
    const room = { taken: cached.journal.files, most: storage || Number.POSITIVE_INFINITY };
    const { signal } = about.stop;
    const owner = ownerOf(nameOf(promise.id), promise);
    const callbackUrl = this.#callbackUrl;
    const quiet = job.expectedAt !== undefined;
    return {
      jobName: nameOf(promise.id),
      startedAt: promise.createdAt,
      deadline: promise.timeoutAt - about.cleanup,
      ...(about.cleanup > 0 && { cleanupUntil: promise.timeoutAt }),
      seed: about.seed,
      owner,
      env: env ? this.#environments.get(env) : {},
      log: logOf(log),
      metrics: instruments.metrics,
      signal,
      start: async (child, given) => {
        settlement.start(); // a cancelled job must not start more
        const name = await this.#childJobs.start({ id: promise.id, storage }, child as Job, given, signal);
        if (signal.aborted) await this.#childJobs.giveUpIfEnded(promise.id, [name]);
        children.push(name);
        return name;
      },
      cancel: (name) => this.#childJobs.cancel(promise.id, name),
      nextArgs: (args) => nextArgs(job, args),
      ...(callbackUrl && { callbackUrl: (id) => callbackUrl(id, promise.timeoutAt) }),
      promiseOf: (name) => store.onBehalfOf(promise.id).idOf(name),
      ...(cached.memo && { memo: cached.memo }),
      ...(job.errors && { errors: job.errors }),
      ...(job.budget && { budget: job.budget }),
      ...(job.events && { events: job.events }),
      files: (of) => attemptFiles(this.#options.files, { ...of, room }, this.#options.fetchPublic),
      limit: (limit, signal) => this.#limits.take(limit, owner, signal),
      beforeAttempt: () => this.#confirmLease(task),
      onState: (state) => reporter.tell(state),
      beforeSleep: () => reporter.beforeSleep({ quiet, patience }),
      onFailure: (error, { step, reason, retry_in_ms }) => {
        if (retry_in_ms === undefined) {
          const stack = error instanceof Error ? thrown(error)?.stack : undefined;
          if (stack) reports?.figures.threw(nameOf(promise.id), { reason: (error as Error).message, stack });
          return;
        }
        instruments.retried(kind);
        reports?.figures.count(kind, "retried");
        reports?.figures.waits({ job: nameOf(promise.id), kind, state: "failing", says: `${step}: ${reason}` });
        settlement.start(); // a job that is cancelled in the pause must not try again
      },
      trace: (step, attempt, run) => instruments.attempt({ log, step, attempt }, run),
    };
  }

  #leaseOn(acquired: AcquiredTask): TaskLease {
    const { client, watcher, rules, lease: patience } = this.#options;
    const send: Send = async (kind, data, origin) => {
      try {
        return await client.send(kind as OperationKind, data as never, { origin, patience });
      } catch (error) {
        const isRefused = error instanceof ResonateRefused && error.status === 400;
        const words = isRefused ? `${REFUSES} ${kind}` : reasonOf(error);
        throw new LeaseLost(words, { cause: error });
      }
    };
    const watch = (id: string, fresh: boolean, listener: (promise?: PromiseRecord) => void) =>
      watcher.watch(id, fresh, listener);
    return new TaskLease(acquired, send, watch, machineClock, rules);
  }

  /** The job's journal: from the cache, or read where the cache lacks records. */
  async #journalOf({ task, promise }: AcquiredTask, lease: TaskLease, log: LineLog): Promise<CachedJob> {
    const cached = this.#cache.take(promise.id);
    const { journal } = cached;
    if (task.version > 1 && journal.version !== task.version - 1) {
      cached.newestEntry = undefined;
      cached.journal = await readNewest(
        journal,
        promise.id,
        (id) => lease.get(id),
        (id, n) => lease.record(id, n),
      );
    }
    lease.run = runId(promise.id, cached.journal.run?.n ?? 1);
    lease.counted = cached.journal;
    const earlier = promise.tags[EARLIER];
    if (earlier !== undefined && !cached.journal.run && !cached.memo)
      Object.assign(cached, await this.#resume(promise.id, earlier, lease, log));
    return cached;
  }

  /** What the job keeps of the attempt before, from which it was asked to go on. Says which it is, once, with the job. */
  async #resume(
    id: string,
    earlier: string,
    lease: TaskLease,
    log: LineLog,
  ): Promise<Pick<CachedJob, "memo" | "args">> {
    const { store, nameOf } = this.#options;
    const before = await readNewest(new Journal(), earlier, (each) => lease.get(each));
    const own = store.onBehalfOf(id);
    const steps = await stepsToKeep(before.events, async (path) => {
      const awaited = own.idOf(nameIn(path));
      return awaited === undefined ? undefined : (await lease.get(awaited))?.state;
    });
    const name = splitKey(nameOf(earlier)).name;
    const anew = `${name} recorded work after a failure, which may have undone its steps: they are done again`;
    const told = await lease.create(resumptionId(id), steps ? { from: name } : { anew }, "resolved");
    const resumption = decodeValue(told.param) as Resumption;
    if (lease.version === 1) log.info(resumption, "from" in resumption ? "job resumed" : "job began anew");
    if (!("from" in resumption && steps)) return { memo: new Map() };
    return { memo: steps, ...(before.run && { args: before.run.args }) };
  }

  /** Rejects if another worker may have the job by now, which would do its work twice. @throws {LeaseLost} */
  async #confirmLease(task: LeaseRef): Promise<void> {
    const isOurs = await this.#heartbeat.isOurs(task).catch((error) => {
      throw new LeaseLost(reasonOf(error), { cause: error });
    });
    if (!isOurs) throw new LeaseLost(LAPSED);
  }

  /** Suspends a job until the clean-up of the attempt before has ended. False where it has. */
  async #waitsForCleanUp({ tags }: PromiseRecord, lease: TaskLease): Promise<boolean> {
    const id = tags[CLEANED_UP];
    if (id === undefined || (await lease.get(id))?.state !== "pending") return false;
    return lease.suspend([id]);
  }

  /** Gives up the child jobs of a cancelled job, whose clean-up this task is, and runs its function's own. */
  async #cleanUp(acquired: AcquiredTask, log: LineLog): Promise<Ending> {
    const { task, tags } = { ...acquired, tags: acquired.promise.tags };
    const id = tags["resonate:parent"] ?? "";
    try {
      const lease = this.#leaseOn({ ...acquired, cleansUp: id });
      const job = await this.#cancelled(id, lease);
      if (!job) {
        await lease.fulfill("resolved", undefined);
        return "complete";
      }
      const jobs = await this.#childJobs.giveUpAll(id, lease);
      log.debug({ jobs }, "child jobs given up");
      const found = this.codeFor(job);
      const kind = (decodeValue(job.param) as { func?: string } | undefined)?.func ?? "";
      const ended = { job: this.#options.nameOf(id), kind, ms: (job.settledAt ?? Date.now()) - job.createdAt };
      if (task.version === 1) this.#options.reports?.figures.ended({ ...ended, outcome: "cancelled" });
      // Jobs that an earlier version started hear nothing of their cancellation.
      const isTold = typeof found === "object" && found.seed !== undefined;
      if (!found && typeof (decodeValue(job.param) as { seed?: unknown } | undefined)?.seed === "string")
        throw new LeaseLost("this worker has no code for its clean-up");
      return isTold ? await this.#undo({ task, promise: job }, lease, found, log) : await this.#cleaned(lease, 0);
    } catch (error) {
      // The lease lapses, and another worker does it.
      log.info({ reason: reasonOf(error) }, "job left");
      return "left";
    }
  }

  async #cleaned(lease: TaskLease, steps: number, stored?: number): Promise<Ending> {
    await lease.fulfill("resolved", { steps }, stored);
    return "complete";
  }

  /** The promise of a cancelled job; undefined where it had ended otherwise. A caller that died before it cancelled has it done here. */
  async #cancelled(id: string, lease: TaskLease): Promise<PromiseRecord | undefined> {
    const end = Date.now() + TIME_TO_CANCEL;
    for (;;) {
      const promise = await lease.get(id);
      if (promise?.state !== "pending") return promise?.state === "rejected_canceled" ? promise : undefined;
      if (Date.now() < end) await pause(50);
      else {
        const data = { id, state: "rejected_canceled" as const, value: encodeValue(undefined) };
        await this.#options.client.call({ kind: "promise.settle", data });
      }
    }
  }

  /** One execution of a cancelled job's clean-up: its function goes on from where it hears of the cancellation. */
  async #undo(
    acquired: Pick<Acquired, "task" | "promise">,
    lease: TaskLease,
    found: Exclude<FoundCode, string>,
    log: LineLog,
  ): Promise<Ending> {
    const { cleanup, storage, implementation } = found;
    const { promise } = acquired;
    const { store, watcher, nameOf } = this.#options;
    const journal = await readNewest(new Journal(), promise.id, (each) => lease.get(each));
    const { run } = journal;
    lease.run = runId(promise.id, run?.n ?? 1);
    lease.counted = journal;
    const { args, seed } = run ?? found;
    const code = run ? implementation.versionOf(run.version) : found.code;
    if (!code) throw new LeaseLost("this worker has no code for its clean-up");
    const time = implementation.job.cleanupTime;
    const told = () => journal.events.find(({ event }) => event.kind === "cancelled");
    const until = (told()?.promise.createdAt ?? Date.now()) + time;
    const overdue = new Error(`it did not end within ${words(time)}`);
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(overdue), Math.min(Math.max(until - Date.now(), 0), LONGEST_TIMER));
    const settlement = new SettlementWatch(promise.id, watcher, stop);
    settlement.close();
    const reporter = new Reporter(store.feeds, promise, undefined, log);
    reporter.close();
    const kind = implementation.job.kind;
    const cached: CachedJob = { journal, newestEntry: undefined };
    const about = { stop, settlement, children: [], seed, cleanup, storage };
    const job = nameOf(promise.id);
    const { onState, beforeSleep, cleanupUntil, ...runtime } = this.#runtime(
      { acquired, lease, cached, reporter, kind, job, log },
      implementation,
      about,
    );
    const cancelled = { at: promise.settledAt ?? Date.now(), deadline: promise.timeoutAt - cleanup };
    try {
      if (!told()) log.info({ cleans_up: job }, "clean-up started");
      const inIt = { ...runtime, ...(run && { run, startedAt: run.startedAt }), deadline: until, cancelled };
      const outcome = await new Execution(code as never, args, journal, lease, inIt).run();
      if (outcome.kind === "asleep") return "asleep";
      const { n = 0 } = told() ?? {};
      const after = journal.events.filter((each) => each.n > n);
      const lost = after.find(({ event }) => (event.kind === "step" || event.kind === "start") && event.error);
      const broken =
        outcome.kind === "failed" && outcome.error instanceof NondeterminismError ? outcome.error : undefined;
      const reason =
        outcome.kind === "blocked"
          ? outcome.reason
          : (broken?.message ?? (lost && "error" in lost.event ? lost.event.error?.message : undefined));
      if (reason !== undefined) return await this.#cleanUpFailed(lease, journal, reason, log);
      log.info({ cleans_up: job, records: after.length }, "clean-up done");
      return await this.#cleaned(lease, after.length, journal.stored + journal.files);
    } catch (error) {
      const reason = error instanceof JobFull ? error : overdue;
      if (reason === overdue && stop.signal.reason !== overdue) throw error;
      return await this.#cleanUpFailed(lease, journal, reason.message, log);
    } finally {
      clearTimeout(timer);
      stop.abort(ENDED);
    }
  }

  async #cleanUpFailed(lease: TaskLease, { stored, files }: Journal, reason: string, log: LineLog): Promise<Ending> {
    log.error({ reason }, "clean-up failed");
    const error = new Error(reason);
    Object.defineProperty(error, "stack", { value: undefined });
    await lease.fulfill("rejected", error, stored + files);
    return "failed";
  }
}

/** When a job is expected to end, for the log, if its definition says so. */
function expectedEnd({ implementation: { job }, args }: Exclude<FoundCode, string>): object {
  return job.expectedAt ? { expected_at: job.expectedAt(args) } : {};
}

function logOf(log: LineLog): Log {
  return {
    debug: (message, fields = {}) => log.debug(fields, message),
    info: (message, fields = {}) => log.info(fields, message),
    warn: (message, fields = {}) => log.warn(fields, message),
    error: (message, fields = {}) => log.error(fields, message),
  };
}
