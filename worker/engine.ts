import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import {
  AsyncHeartbeat,
  Codec,
  OptionsBuilder,
  type PromiseRecord,
  Registry,
  type Request,
  type Send,
  type TaskRecord,
  WallClock,
} from "@resonatehq/sdk";
import { type Context, Core, type Status } from "@resonatehq/sdk/async";
import * as z from "zod";
import { REQUEST_TAG } from "../functions/jobs/job.ts";
import { type DurableFunction, storedError } from "./functions/durable.ts";
import { type Logger, reasonOf } from "./logger.ts";
import { leasesLost, settled } from "./metrics.ts";
import { inSpan, traceOf } from "./tracing.ts";

/** A task this worker has a lease on, with its promise and those of the steps that have ended, still encoded. */
export interface Acquired {
  task: TaskRecord;
  promise: PromiseRecord;
  preload: PromiseRecord[];
}

export interface EngineOptions {
  functions: readonly DurableFunction[];
  pid: string;
  /** In milliseconds. */
  lease: number;
  send: Send;
  /** The job a promise id names. */
  nameOf(id: string): string;
  log: Logger;
}

/** What a job's promise holds: the function to run and its arguments. */
const Invocation = z.object({ func: z.string(), args: z.array(z.unknown()), version: z.literal(1).optional() });

/** The most a Node timer can wait, in milliseconds. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** Runs jobs by the Resonate client library's own engine, each apart from the others. */
export class Engine {
  readonly #options: EngineOptions;
  readonly #codec = new Codec();
  readonly #registry = new Registry();
  readonly #heartbeat: AsyncHeartbeat;
  /** The logs of the jobs that are running, by promise id: what a job's function writes says whose it is. */
  readonly #logs = new Map<string, Logger>();
  readonly #core: Core;
  /** Tasks that the server has said are no longer this worker's. */
  readonly #lost = new Set<string>();

  constructor(options: EngineOptions) {
    this.#options = options;
    const { functions, pid, lease, send, log } = options;
    const logger = quiet(log);
    for (const each of functions) this.#registry.add(this.#isolated(each) as never, each.name, 1);
    this.#heartbeat = new AsyncHeartbeat(pid, lease / 3, send, logger);
    this.#core = new Core({
      pid,
      ttl: lease,
      clock: new WallClock(),
      send: this.#send,
      codec: this.#codec,
      registry: this.#registry,
      heartbeat: this.#heartbeat,
      dependencies: new Map(),
      optsBuilder: new OptionsBuilder({ match: (group) => `poll://any@${group}` }),
      logger,
    });
  }

  /**
   * Runs a task until its job has ended or sleeps, keeping the lease alive. Never rejects: a job that cannot go on here
   * is left, and when its lease has lapsed the server offers it again. `kind` is the kind of job.
   */
  async execute(acquired: Acquired, kind: string): Promise<void> {
    const { id, tags } = acquired.promise;
    const job = this.#options.nameOf(id);
    const attributes = { job, "task.version": acquired.task.version };
    const parent = traceOf(tags["resonate:origin"] ?? id);
    const request = tags[REQUEST_TAG];
    const log = this.#options.log.child({ job, ...(request !== undefined && { request_id: request }) });
    this.#logs.set(id, log);
    await inSpan(
      `job ${kind}`,
      { attributes, parent },
      () => this.#execute(acquired, kind, log),
      (outcome) => ({ outcome }),
    );
    this.#logs.delete(id);
  }

  async #execute({ task, promise, preload }: Acquired, kind: string, log: Logger): Promise<Outcome> {
    const decoded = this.#decode(promise);
    if (!decoded) {
      // Not handed back, which would bring it straight here again: later, a worker that knows its function may get it.
      log.warn("no function for this job here");
      return "left";
    }
    if (task.version === 1) log.info("job started");
    else log.debug({ version: task.version }, "job continued");
    this.#heartbeat.start(task);
    const ended = new AbortController();
    const timeLeft = Math.min(Math.max(promise.timeoutAt - Date.now(), 0), LONGEST_TIMER);
    try {
      // A function that never returns keeps its place only until the deadline has settled its promise.
      const status = await Promise.race([
        this.#core.executeUntilBlocked(task, decoded, preload),
        delay(timeLeft, undefined, { signal: ended.signal }),
      ]);
      if (status?.kind === "done") return report(log, kind, promise, status);
      if (status) return "asleep";
      log.warn("job still running at its deadline");
      return "left";
    } catch (error) {
      if (!isUnstorable(error)) return this.#leave(task, kind, error, log);
      return await this.#fail(task, promise, kind, error, log);
    } finally {
      ended.abort();
      this.#heartbeat.stop(task);
      this.#lost.delete(task.id);
    }
  }

  #leave({ id }: TaskRecord, kind: string, error: unknown, log: Logger): "left" {
    if (this.#lost.has(id)) leasesLost.inc({ job: kind });
    log.info({ reason: reasonOf(error) }, "job left");
    return "left";
  }

  /** Lets every lease lapse. */
  stop(): void {
    this.#heartbeat.stop();
  }

  #decode(promise: PromiseRecord): PromiseRecord | undefined {
    try {
      const decoded = this.#codec.decodePromise(promise);
      if (promise.tags["resonate:timer"] === "true") return decoded;
      return this.#registry.get(Invocation.parse(decoded.param.data).func, 1) && decoded;
    } catch {
      return undefined;
    }
  }

  /** Fails a job whose result, or a step's, cannot be stored: run again it would only end the same way. */
  async #fail(task: TaskRecord, promise: PromiseRecord, kind: string, cause: unknown, log: Logger): Promise<Outcome> {
    const { id, version } = task;
    const value = storedError(`the result cannot be stored as JSON: ${rootCause(cause)}`);
    const head = { corrId: randomUUID(), version: "2026-04-01", "resonate:origin": id };
    const data = { id, state: "rejected" as const, value: this.#codec.encode(value) };
    try {
      const action = { kind: "promise.settle" as const, head, data };
      await this.#send({ kind: "task.fulfill", head, data: { id, version, action } });
      return report(log, kind, promise, { state: "rejected", value });
    } catch (error) {
      return this.#leave(task, kind, error, log);
    }
  }

  /**
   * What the engine sends goes through here. It releases a task as soon as a pass over it breaks, and the server offers
   * it again as soon as it is released: a job that cannot be run would go round and round. So the lease lapses instead.
   * It also does not look at how the settlement of a job was answered, so a lost lease becomes an error here.
   */
  #send: Send = async (request) => {
    if (request.kind === "task.release") {
      return { kind: request.kind, head: { ...request.head, status: 200 }, data: {} } as never;
    }
    const answer = await this.#options.send(request);
    const { status } = answer.head;
    if (isAboutTask(request) && (status === 404 || status === 409)) this.#lost.add(request.data.id);
    if (request.kind === "task.fulfill" && status !== 200) {
      throw new Error("settled elsewhere, or its lease was lost");
    }
    return answer;
  };

  #isolated({ run }: DurableFunction) {
    return async (ctx: Context, ...args: unknown[]): Promise<unknown> => {
      try {
        return await run(ctx, args, this.#logs.get(ctx.id) ?? this.#options.log);
      } catch (error) {
        throw storedError(error);
      }
    };
  }
}

/** How a pass over a job ended: settled, asleep until something it waits for has happened, or given up here. */
type Outcome = "complete" | "failed" | "asleep" | "left";

function isAboutTask(request: Request): request is Extract<Request, { kind: "task.fence" }> {
  return ["task.fence", "task.suspend", "task.fulfill"].includes(request.kind);
}

function report(
  log: Logger,
  job: string,
  { createdAt }: PromiseRecord,
  { state, value }: Pick<Extract<Status, { kind: "done" }>, "state" | "value">,
): "complete" | "failed" {
  const duration_ms = Date.now() - createdAt;
  const outcome = state === "resolved" ? "complete" : "failed";
  log.info({ outcome, duration_ms, ...(outcome === "failed" && { reason: reasonOf(value) }) }, "job done");
  settled.inc({ job, outcome });
  return outcome;
}

/** Whether the engine could not encode what a job or one of its steps returned or threw. */
function isUnstorable(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "06" || error.code === "08");
}

function rootCause(error: unknown): string {
  if (error instanceof Error && error.cause !== undefined) return rootCause(error.cause);
  return error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
}

/** The library's own log, for whoever looks for it: what matters of it is said above in the job's terms. */
function quiet(log: Logger) {
  const debug = (fields: object, message: string) => log.debug(fields, message);
  return { debug, info: debug, warn: debug, error: debug };
}
