import type * as z from "zod";
import type { Implementation } from "../../core/author/implement.ts";
import type { Log } from "../../core/definitions/context.ts";
import { type Job, REQUEST_TAG } from "../../core/definitions/job.ts";
import { Execution, LeaseLost, type Runtime } from "../../core/engine/execution.ts";
import { Journal, type JournalRecord } from "../../core/engine/journal.ts";
import { type Send, TaskLease } from "../../core/engine/lease.ts";
import { SETTLED } from "../../core/engine/runtime.ts";
import { AFTER } from "../../core/jobs/after.ts";
import { ownerOf } from "../../core/jobs/durable-promise.ts";
import type { RemoteStore } from "../../core/jobs/remote-store.ts";
import type { ResonateClient } from "../../core/store/client.ts";
import { EARLIER, STARTER } from "../../core/store/codec.ts";
import { splitKey } from "../../core/store/ids.ts";
import type { Acquired, LeaseRef, OperationKind, PromiseRecord } from "../../core/store/protocol.ts";
import type { PromiseWatcher } from "../intake/promise-watch.ts";
import { ChildJobs } from "./child-jobs.ts";
import { codeFor, environmentsOf, type FoundCode } from "./code.ts";
import { conclude, type Ending, type Run, rests } from "./ending.ts";
import type { Heartbeat } from "./heartbeat.ts";
import { type Instruments, type LineLog, reasonOf } from "./instruments.ts";
import { JournalCache, type Remembered } from "./journal-cache.ts";
import { Limits } from "./limits.ts";
import { Reporter } from "./reporter.ts";

export interface EngineOptions {
  implementations: readonly Implementation[];
  /** The environment that the implementations take their variables from; checked by them when the executor is made. */
  env: Readonly<Record<string, string | undefined>>;
  client: ResonateClient;
  store: RemoteStore;
  news: PromiseWatcher;
  heartbeat: Heartbeat;
  /** In milliseconds. */
  lease: number;
  /** How much of what jobs that sleep have done is remembered, in bytes. */
  memory?: number;
  namespace: string;
  /** The job a promise id names. */
  nameOf(id: string): string;
  log: LineLog;
  instruments: Instruments;
}

/** A job that runs longer than this, or tries again, is told when it is cancelled; in milliseconds. */
const LONG_STEP = 2_000;

/** What is still under way for a job that has ended here is aborted with this. Made once: a new one takes its stack each time. */
const ENDED = new DOMException("the job is no longer run here", "AbortError");

/** The reason of a pass that found its lease lapsed before it began another attempt. */
const LAPSED = "its lease had lapsed";

/** The longest a Node timer can wait, in milliseconds. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** A task that was acquired, with its promise and what came with it. */
type Task = Pick<Acquired, "task" | "promise"> & Partial<Acquired>;

/** Runs jobs, each apart from the others. */
export class Executor {
  readonly #options: EngineOptions;
  readonly #heartbeat: Heartbeat;
  readonly #histories: JournalCache;
  readonly #started: ChildJobs;
  readonly #environments: ReadonlyMap<z.ZodType, unknown>;
  readonly #limits: Limits;

  /** @throws {Error} naming the variables that an implementation needs and the environment lacks */
  constructor(options: EngineOptions) {
    this.#options = options;
    this.#heartbeat = options.heartbeat;
    this.#histories = new JournalCache(options.memory);
    this.#environments = environmentsOf(options.implementations, options.env);
    this.#limits = new Limits(options.client, options.news, options.namespace, options.lease);
    this.#started = new ChildJobs(options);
  }

  /** What a task is to be acquired with: see {@link JournalCache.wanted}. */
  recordsWanted(dispatch: LeaseRef): number | undefined {
    return this.#histories.wanted(dispatch);
  }

  /** What runs a job here: see {@link codeFor}. */
  codeFor(promise: PromiseRecord): FoundCode | undefined {
    return codeFor(promise, this.#options.implementations);
  }

  /**
   * Runs a task until its job has ended or sleeps, keeping the lease alive. Never rejects: a job that cannot go on here
   * is left, and when its lease has lapsed the server dispatches it again. `kind` is the kind of job.
   */
  async execute(acquired: Task, runnable: FoundCode, kind: string): Promise<void> {
    const { id, tags } = acquired.promise;
    const job = this.#options.nameOf(id);
    const attributes = { job, "task.version": acquired.task.version };
    const request = tags[REQUEST_TAG];
    const starter = tags[STARTER];
    const log = this.#options.log.child({
      job,
      ...(request !== undefined && { request_id: request }),
      // The job that started it, where one did.
      ...(starter !== undefined && splitKey(starter).name !== "" && { started_by: starter }),
    });
    await this.#options.instruments.inSpan(
      `job ${kind}`,
      { attributes, of: tags["resonate:origin"] ?? id },
      () => this.#execute(acquired, runnable, kind, log),
      (outcome) => ({ outcome }),
    );
  }

  async #execute(acquired: Task, runnable: FoundCode, kind: string, log: LineLog): Promise<Ending> {
    const { task, promise } = acquired;
    if (runnable === AFTER) return this.#after(acquired, log);
    if (await this.#started.isGivenUp(promise)) {
      log.info({ reason: "what had started it was cancelled" }, "job left");
      return "left";
    }
    if (task.version === 1) log.info(expected(runnable), "job started");
    else log.debug({ version: task.version }, "job continued");
    this.#heartbeat.start(task);
    const stop = new AbortController();
    const timeLeft = Math.min(Math.max(promise.timeoutAt - Date.now(), 0), LONGEST_TIMER);
    const deadline = setTimeout(() => {
      log.warn("job still running at its deadline");
      stop.abort();
    }, timeLeft);
    try {
      return await this.#run(acquired, runnable, kind, log, stop);
    } catch (error) {
      const isSettled = stop.signal.reason === SETTLED;
      const isRefused = error instanceof LeaseLost && error.message.includes("answered 4");
      const isLost = isSettled || isRefused || reasonOf(error) === LAPSED;
      if (isLost) this.#options.instruments.leaseLost(kind);
      log.info({ reason: isSettled ? SETTLED : reasonOf(error) }, "job left");
      return "left";
    } finally {
      clearTimeout(deadline);
      stop.abort(ENDED);
      this.#heartbeat.stop(task);
    }
  }

  async #run(
    acquired: Task,
    { code, args, implementation }: Exclude<FoundCode, string>,
    kind: string,
    log: LineLog,
    stop: AbortController,
  ): Promise<Ending> {
    const { task, promise } = acquired;
    const { client, store, news, instruments, lease: patience } = this.#options;
    const send: Send = async (request, data, origin) => {
      try {
        return await client.send(request as OperationKind, data as never, { origin, patience });
      } catch (error) {
        throw new LeaseLost(reasonOf(error), { cause: error });
      }
    };
    const lease = new TaskLease(acquired, send, (id, fresh, tell) => news.watch(id, fresh, tell));
    const remembered = await this.#remember(acquired, lease);
    const journal = task.version === 1 ? { n: 0, text: "", at: 0 } : remembered.journal;
    const reporter = new Reporter(store.feeds, promise, journal, log);
    const run: Run = { acquired, lease, remembered, reporter, kind, log };
    if (remembered.history.version !== task.version - 1 && (await rests(run, store.feeds))) return "blocked";
    const quiet = implementation.job.expectedAt !== undefined;
    let watching: "not yet" | "yes" | "no longer" = "not yet";
    const look = async () => {
      const known = await news.watch(promise.id, false, () => void look()).catch(() => undefined);
      if (watching === "yes" && known && known.state !== "pending") stop.abort(SETTLED);
    };
    const watchForEnd = () => {
      if (watching !== "not yet") return;
      watching = "yes";
      void look();
    };
    const longStep = setTimeout(watchForEnd, LONG_STEP);
    const started: string[] = [];
    const owner = ownerOf(this.#options.nameOf(promise.id), promise);
    const around: Runtime = {
      jobName: this.#options.nameOf(promise.id),
      deadline: promise.timeoutAt,
      owner,
      env: implementation.env ? this.#environments.get(implementation.env) : {},
      log: logOf(log),
      metrics: instruments.metrics,
      signal: stop.signal,
      start: async (job, given) => {
        watchForEnd(); // what is cancelled starts no more
        const name = await this.#started.start(promise.id, job as Job, given, stop.signal);
        if (stop.signal.aborted) await this.#started.giveUpIfEnded(promise.id, [name]);
        started.push(name);
        return name;
      },
      promiseOf: (name) => store.onBehalfOf(promise.id).idOf(name),
      ...(remembered.memo && { memo: remembered.memo }),
      limit: (limit, signal) => this.#limits.take(limit, owner, signal),
      beforeAttempt: () => this.#confirm(task),
      onState: (state) => reporter.tell(state),
      beforeSleep: () => reporter.beforeSleep({ quiet, patience }),
      onFailure: (_error, { retry_in_ms }) => {
        if (retry_in_ms === undefined) return;
        instruments.retried(kind);
        watchForEnd(); // in the pause as well: a job that is cancelled asks no more
      },
      trace: (step, attempt, run) => {
        const inside = () => instruments.contained({ log, step }, run);
        return instruments.inSpan(`step ${step}`, { attributes: { attempt } }, inside, () => ({}));
      },
    };
    try {
      const outcome = await new Execution(code as never, args, remembered.history, lease, around).run();
      return await conclude(outcome, run, { histories: this.#histories, instruments });
    } catch (error) {
      // Of what was started last there may be no record.
      if (error instanceof LeaseLost) await this.#started.giveUpIfEnded(promise.id, started);
      throw error;
    } finally {
      watching = "no longer";
      clearTimeout(longStep);
      reporter.close();
    }
  }

  /** What is known of what a job has done: what this worker remembers, and what it has to read. */
  async #remember({ task, promise }: Task, lease: TaskLease): Promise<Remembered> {
    const remembered = this.#histories.take(promise.id);
    const { history } = remembered;
    if (task.version > 1 && history.version !== task.version - 1) {
      remembered.journal = undefined;
      await history.load(promise.id, (id, n) => lease.record(id, n));
    }
    const earlier = promise.tags[EARLIER];
    if (earlier !== undefined) remembered.memo ??= await memoOf(earlier, lease);
    return remembered;
  }

  /** Begins nothing for a job that may be another worker's by now: it would be done twice. @throws {LeaseLost} */
  async #confirm(task: LeaseRef): Promise<void> {
    const isOurs = await this.#heartbeat.isOurs(task).catch((error) => {
      throw new LeaseLost(reasonOf(error), { cause: error });
    });
    if (!isOurs) throw new LeaseLost(LAPSED);
  }

  /** A job was cancelled: what it has started, by its records, is given up. */
  async #after({ task, promise }: Task, log: LineLog): Promise<Ending> {
    const { client, lease: patience } = this.#options;
    this.#heartbeat.start(task);
    try {
      const send: Send = (kind, data, origin) =>
        client.send(kind as OperationKind, data as never, { origin, patience });
      const lease = new TaskLease({ task, promise }, send);
      const jobs = await this.#started.giveUpAll(promise.tags["resonate:parent"] ?? "", lease);
      await lease.fulfill("resolved", undefined);
      log.debug({ jobs }, "what it had started is given up");
      return "complete";
    } catch (error) {
      // The lease lapses, and it is done again.
      log.info({ reason: reasonOf(error) }, "job left");
      return "left";
    } finally {
      this.#heartbeat.stop(task);
    }
  }
}

/** When a job is expected to end, for the log: only of a kind of work that knows. */
function expected({ implementation: { job }, args }: { implementation: Implementation; args: unknown }): object {
  return job.expectedAt ? { expected_at: job.expectedAt(args) } : {};
}

/** The outcomes of the steps of an attempt that failed, by their calls. */
async function memoOf(id: string, lease: TaskLease): Promise<ReadonlyMap<string, JournalRecord>> {
  const history = new Journal();
  await history.load(id, (each) => lease.get(each));
  return new Map(history.events.flatMap((each) => (each.event.kind === "step" ? [[each.event.op, each]] : [])));
}

function logOf(log: LineLog): Log {
  return {
    debug: (message, fields = {}) => log.debug(fields, message),
    info: (message, fields = {}) => log.info(fields, message),
    warn: (message, fields = {}) => log.warn(fields, message),
    error: (message, fields = {}) => log.error(fields, message),
  };
}
