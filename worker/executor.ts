import PQueue from "p-queue";
import * as z from "zod";
import { type Log, NonRetryableError } from "../core/durable/context.ts";
import { earlierQuestions } from "../core/durable/earlier.ts";
import { History, type Recorded } from "../core/durable/events.ts";
import type { Implementation } from "../core/durable/implement.ts";
import { type Send, TaskLease } from "../core/durable/lease.ts";
import { LeaseLost, Pass, type PassEnd, type Surroundings } from "../core/durable/replay.ts";
import { type Mark, markedBefore, markId, needsMark, restAfter } from "../core/durable/standstill.ts";
import { SETTLED } from "../core/durable/surroundings.ts";
import { toStored } from "../core/durable/values.ts";
import { AFTER } from "../core/jobs/after.ts";
import { bellOf, isLost, lostWords } from "../core/jobs/blocked.ts";
import { splitKey } from "../core/jobs/caller.ts";
import { type Job, NotStarted, REQUEST_TAG, VERSION_TAG } from "../core/jobs/job.ts";
import { startJob } from "../core/jobs/start.ts";
import type { ResonateClient } from "../core/resonate/client.ts";
import { decodeValue, EARLIER, ownerOf, STARTER } from "../core/resonate/codec.ts";
import type { Acquired, LeaseRef, OperationKind, PromiseRecord } from "../core/resonate/protocol.ts";
import type { RemoteStore } from "../core/resonate/remote-store.ts";
import type { Heartbeat } from "./heartbeat.ts";
import { Histories, type Remembered } from "./histories.ts";
import { type Instruments, type LineLog, reasonOf, thrown } from "./instruments.ts";
import { Limits } from "./limits.ts";
import type { News } from "./news.ts";
import { Reporter } from "./reporter.ts";
import { Returns } from "./returns.ts";

export interface EngineOptions {
  implementations: readonly Implementation[];
  /** The environment that the implementations take their variables from; checked by them when the executor is made. */
  env: Readonly<Record<string, string | undefined>>;
  client: ResonateClient;
  store: RemoteStore;
  news: News;
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

/** What a job's promise holds: the function to run and its arguments. */
const Invocation = z.object({ func: z.string(), args: z.array(z.unknown()) });

/** How many jobs are started at once by all that run here. */
const STARTS = 32;

/** A job that runs longer than this, or tries again, is told when it is cancelled; in milliseconds. */
const LONG_STEP = 2_000;

/** What is still under way for a job that has ended here is aborted with this. Made once: a new one takes its stack each time. */
const ENDED = new DOMException("the job is no longer run here", "AbortError");

/** The longest a Node timer can wait, in milliseconds. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** A task that was acquired, with its promise and what came with it. */
type Task = Pick<Acquired, "task" | "promise"> & Partial<Acquired>;

/** What runs a job: a version of its function, with the job's arguments, or what is done after a cancelled one. */
export type FoundCode =
  | { code: NonNullable<ReturnType<Implementation["versionOf"]>>; args: unknown; implementation: Implementation }
  | typeof AFTER;

/** Runs jobs, each apart from the others. */
export class Executor {
  readonly #options: EngineOptions;
  readonly #heartbeat: Heartbeat;
  readonly #histories: Histories;
  readonly #starts = new PQueue({ concurrency: STARTS });
  readonly #environments: ReadonlyMap<z.ZodType, unknown>;
  readonly #returns: Returns;
  readonly #limits: Limits;

  /** @throws {Error} naming the variables that an implementation needs and the environment lacks */
  constructor(options: EngineOptions) {
    this.#options = options;
    this.#heartbeat = options.heartbeat;
    this.#histories = new Histories(options.memory);
    this.#environments = environmentsOf(options);
    this.#limits = new Limits(options.client, options.news, options.namespace, options.lease);
    this.#returns = new Returns(options.store, options.log);
  }

  /** What a task is to be acquired with: see {@link Histories.wanted}. */
  recordsWanted(dispatch: LeaseRef): number | undefined {
    return this.#histories.wanted(dispatch);
  }

  /** What runs a job here; undefined for one of a kind, or of a version of it, that this worker does not know. */
  codeFor(promise: PromiseRecord): FoundCode | undefined {
    const invocation = Invocation.safeParse(decodeValue(promise.param)).data;
    if (invocation?.func === AFTER) return AFTER;
    const implementation = this.#options.implementations.find(({ job }) => job.kind === invocation?.func);
    if (!invocation || !implementation) return undefined;
    const version = promise.tags[VERSION_TAG];
    // A job from before there were versions begins anew: nothing that it had done is of another form.
    const code =
      version === undefined
        ? (implementation.versionOf(0) ?? implementation.versionOf(implementation.job.version))
        : implementation.versionOf(Number(version));
    return code && { code, args: invocation.args[0], implementation };
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
    if (await this.#isGivenUp(promise)) {
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
      const isLost = isSettled || (error instanceof LeaseLost && error.message.includes("answered 4"));
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
    const reporter = new Reporter(store.journals, promise, journal, log);
    if (remembered.history.version !== task.version - 1 && (await this.#rests(lease, remembered, reporter, log))) {
      return "blocked";
    }
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
    const around: Surroundings = {
      jobName: this.#options.nameOf(promise.id),
      deadline: promise.timeoutAt,
      owner,
      env: implementation.env ? this.#environments.get(implementation.env) : {},
      log: logOf(log),
      metrics: instruments.metrics,
      signal: stop.signal,
      start: async (job, given) => {
        watchForEnd(); // what is cancelled starts no more
        const name = await this.#start(promise.id, job as Job, given, stop.signal);
        if (stop.signal.aborted) await this.#giveUpIfEnded(promise.id, [name]);
        started.push(name);
        return name;
      },
      promiseOf: (name) => store.onBehalfOf(promise.id).idOf(name),
      ...(promise.tags[VERSION_TAG] === undefined && {
        askedBefore: earlierQuestions(promise.id, remembered.history, (id) => lease.get(id)),
      }),
      ...(remembered.memo && { memo: remembered.memo }),
      limit: (limit, signal) => this.#limits.take(limit, owner, signal),
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
      const outcome = await new Pass(code as never, args, remembered.history, lease, around).run();
      return await this.#conclude(outcome, { acquired, lease, remembered, reporter, kind, log });
    } catch (error) {
      // Of what was started last there may be no record.
      if (error instanceof LeaseLost) await this.#giveUpIfEnded(promise.id, started);
      throw error;
    } finally {
      watching = "no longer";
      clearTimeout(longStep);
      reporter.close();
    }
  }

  async #conclude(
    outcome: PassEnd,
    run: {
      acquired: Task;
      lease: TaskLease;
      remembered: Remembered;
      reporter: Reporter;
      kind: string;
      log: LineLog;
    },
  ): Promise<Ending> {
    const { acquired, lease, remembered, reporter, kind, log } = run;
    const { task, promise } = acquired;
    // What was on its way to be told is told no more.
    if (outcome.kind === "complete" || outcome.kind === "failed") reporter.close();
    switch (outcome.kind) {
      case "complete":
        await lease.fulfill("resolved", outcome.value);
        await this.#returns.give(promise);
        return this.#report(log, kind, promise, "complete");
      case "failed": {
        const error = storedError(outcome.error);
        await lease.fulfill("rejected", error);
        await this.#returns.give(promise);
        return this.#report(log, kind, promise, "failed", error.message, outcome.error);
      }
      case "asleep":
        remembered.history.version = task.version;
        this.#histories.put(promise.id, { ...remembered, journal: reporter.newest });
        return "asleep";
      case "blocked": {
        log.warn({ reason: outcome.reason }, "job blocked");
        await reporter.blocked(outcome.reason);
        // Looked at again with pauses: code that fits may be back.
        const { id, due } = bellOf(promise.id, Date.now());
        await lease.create(id, undefined, { due });
        if (!(await lease.suspend([id]))) log.debug("looked at again at once");
        return "blocked";
      }
    }
  }

  #report(
    log: LineLog,
    job: string,
    { createdAt }: PromiseRecord,
    outcome: "complete" | "failed",
    reason?: string,
    error?: unknown,
  ): "complete" | "failed" {
    const duration_ms = Date.now() - createdAt;
    // Where it was thrown is for whoever wrote the function; callers get the reason only.
    const why = reason !== undefined && { reason, ...(error instanceof Error && { error: thrown(error) }) };
    log.info({ outcome, duration_ms, ...why }, "job done");
    this.#options.instruments.settled(job, outcome);
    return outcome;
  }

  /**
   * Leaves a job alone for a while whose workers were lost, one after the other, at the same point: it may be what ends
   * them, and with them what runs beside it. Whether it does.
   */
  async #rests(lease: TaskLease, { history }: Remembered, reporter: Reporter, log: LineLog): Promise<boolean> {
    const { id, version } = lease;
    if (!needsMark(history, version)) return false;
    let before: PromiseRecord | undefined;
    for (const each of markedBefore(history, version)) before ??= await lease.get(markId(id, each));
    const { begun, rests }: Mark = before ? (decodeValue(before.param) as Mark) : { begun: 0 };
    const rest = rests ? 0 : restAfter(begun);
    if (rest === 0 || (await this.#isBlocked(id))) {
      await lease.create(markId(id, version), { begun: begun + 1 } satisfies Mark, "resolved");
      return false;
    }
    const due = Math.ceil(Date.now() + rest);
    const mark = await lease.create(markId(id, version), { begun, rests: true } satisfies Mark, { due });
    log.error({ reason: lostWords(due) }, "job blocked");
    await reporter.blocked(lostWords(due));
    return lease.suspend([mark.id]);
  }

  /** Whether code that does not fit what a job has done is why it leaves no records. */
  async #isBlocked(id: string): Promise<boolean> {
    const { blocked } = (await this.#options.store.journals.newest(id)).entry ?? {};
    return blocked !== undefined && !isLost(blocked);
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

  /** Starts another job on behalf of one that runs here. */
  async #start(id: string, job: Job, args: unknown, signal: AbortSignal): Promise<string> {
    const store = this.#options.store.onBehalfOf(id);
    const started = await this.#starts.add(async () => {
      if (signal.aborted) throw new LeaseLost("the job is no longer run here");
      try {
        return await startJob(store, job, job.args.parse(args), Date.now());
      } catch (error) {
        if (!(error instanceof NotStarted || error instanceof z.ZodError)) throw error;
        throw new NonRetryableError(`${job.kind} was not started: ${error.message}`);
      }
    });
    return started.name;
  }

  /** Gives up what a job has started, when it has been cancelled or was not done in time. */
  async #giveUpIfEnded(id: string, started: readonly string[]): Promise<void> {
    if (started.length === 0) return;
    try {
      const answer = await this.#options.client.send("promise.get", { id }, { origin: id });
      const state = answer.status === 200 ? answer.data.promise.state : "pending";
      if (state === "rejected_canceled" || state === "rejected_timedout") await this.#giveUp(id, started);
    } catch (error) {
      this.#options.log.debug({ reason: reasonOf(error) }, "what it started was not given up");
    }
  }

  /**
   * Whether a job was started by one that has been cancelled, and nobody else wants it: it is cancelled then. A worker that
   * died may have left no record of what it started last.
   */
  async #isGivenUp({ id, tags }: PromiseRecord): Promise<boolean> {
    const { news, store, nameOf } = this.#options;
    const starter = tags[STARTER];
    if (starter === undefined || splitKey(starter).name === "") return false;
    const parent = this.#options.namespace + starter;
    const known = await news.watch(parent, false, () => {}).catch(() => undefined);
    if (known?.state !== "rejected_canceled" && known?.state !== "rejected_timedout") return false;
    return store
      .onBehalfOf(parent)
      .giveUp(nameOf(id))
      .catch(() => false);
  }

  async #giveUp(id: string, started: readonly string[]): Promise<void> {
    const store = this.#options.store.onBehalfOf(id);
    await this.#starts.addAll([...new Set(started)].map((name) => () => store.giveUp(name)));
  }

  /** A job was cancelled: what it has started, by its records, is given up. */
  async #after({ task, promise }: Task, log: LineLog): Promise<Ending> {
    const { client, lease: patience } = this.#options;
    const id = promise.tags["resonate:parent"] ?? "";
    this.#heartbeat.start(task);
    try {
      const send: Send = (kind, data, origin) =>
        client.send(kind as OperationKind, data as never, { origin, patience });
      const lease = new TaskLease({ task, promise }, send);
      const history = new History();
      await history.load(id, (each) => lease.get(each));
      const started = history.events.flatMap(({ event, value }) =>
        event.kind === "start" && typeof value === "string" ? [value] : [],
      );
      await this.#giveUp(id, started);
      await lease.fulfill("resolved", undefined);
      log.debug({ jobs: started.length }, "what it had started is given up");
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

/** How a pass over a job ended: settled, asleep until something it waits for has happened, or given up here. */
type Ending = "complete" | "failed" | "asleep" | "blocked" | "left";

/** The values that each implementation has asked for. */
function environmentsOf({ implementations, env }: EngineOptions): ReadonlyMap<z.ZodType, unknown> {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
  const environments = new Map<z.ZodType, unknown>();
  const problems: string[] = [];
  for (const { env: schema } of implementations) {
    if (!schema || environments.has(schema)) continue;
    const parsed = schema.safeParse(given);
    environments.set(schema, parsed.data);
    for (const { path, message } of parsed.error?.issues ?? []) problems.push(`${path.join(".")}: ${message}`);
  }
  if (problems.length > 0) throw new Error(`Configuration: ${problems.join("; ")}`);
  return environments;
}

/** The outcomes of the steps of an attempt that failed, by their calls. */
async function memoOf(id: string, lease: TaskLease): Promise<ReadonlyMap<string, Recorded>> {
  const history = new History();
  await history.load(id, (each) => lease.get(each));
  return new Map(history.events.flatMap((each) => (each.event.kind === "step" ? [[each.event.op, each]] : [])));
}

/**
 * What a failed job stores: an Error with a short message and no stack, whatever was thrown. Everyone who may read the
 * job reads it.
 */
function storedError(thrown: unknown): Error {
  const { name, message } = toStored(thrown);
  const attempts = (thrown as { attempts?: unknown } | undefined)?.attempts;
  const gaveUp = `gave up after ${attempts} ${attempts === 1 ? "attempt" : "attempts"}: `;
  const error = new Error(typeof attempts === "number" ? gaveUp + message : message);
  if (name === "ProtocolFailure") error.name = name;
  Object.defineProperty(error, "stack", { value: undefined });
  return error;
}

function logOf(log: LineLog): Log {
  return {
    debug: (message, fields = {}) => log.debug(fields, message),
    info: (message, fields = {}) => log.info(fields, message),
    warn: (message, fields = {}) => log.warn(fields, message),
    error: (message, fields = {}) => log.error(fields, message),
  };
}
