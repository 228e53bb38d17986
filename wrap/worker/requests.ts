/** The requests of a job: made, found under way in this process, or gone on with where another process has left them. */
import { createHash } from "node:crypto";
import { NonRetryableError, SECOND, type Step } from "../../core/definitions/context.ts";
import { SETTLED } from "../../core/engine/runtime.ts";
import { type CallArgs, NOT_DONE, READ } from "../call-job.ts";
import type { Connection } from "./connection.ts";
import { CallRefused, Gone, Lost, NotSent } from "./errors.ts";
import { type CallEvent, LiveCall } from "./live.ts";
import { explain, explained, failure, unknownEffect } from "./outcome.ts";
import { OWN, type Resumable, requestId } from "./request-state.ts";
import { asTask, isSessionOver, type JsonObject, type Leg, legOf, type Segment } from "./segment.ts";
import { knownTask, TaskEnded, watchLegacyTask } from "./tasks.ts";
import type { WrappedServer } from "./wrapped-server.ts";

/** How long a stream that was picked up may be silent of the call's end, in milliseconds; then it is picked up again. */
const PICK_UP_AGAIN = 10 * SECOND;

/** The job that requests are of. */
interface JobOfRequests {
  jobName: string;
  /** When it times out: what tells it from one that had the same name before. */
  deadline: number;
  /** Aborted when the job is no longer run here. */
  signal: AbortSignal;
  args: CallArgs;
  /** What was answered to the questions of the 2025 revisions, by the numbers of the events. */
  answers: ReadonlyMap<number, JsonObject>;
  /** What was asked, by the ids of the questions: the numbers of the events. */
  questions: ReadonlyMap<string | number, number>;
}

export class Requests {
  readonly #server: WrappedServer;
  readonly #job: JobOfRequests;
  /** Streams of tasks' results that tell nothing any more. */
  readonly #useless = new WeakSet<Resumable>();

  constructor(server: WrappedServer, job: JobOfRequests) {
    this.#server = server;
    this.#job = job;
  }

  /**
   * Waits for event `n`, `timeout` milliseconds at most; in a process that knows nothing of the request makes it first, where
   * that may be.
   */
  async event(step: Step, n: number, segment: Segment, timeout: number | undefined): Promise<Leg> {
    const { calls, options } = this.#server;
    const { jobName } = this.#job;
    const { sentAt } = segment;
    const live =
      calls.find(jobName, n) ??
      (await calls.begin(jobName, segment.base, () => this.#begin(step, this.#beginning(segment, n))));
    const abandon = Promise.withResolvers<never>();
    abandon.promise.catch(() => {});
    // A server may take a stream for picked up, and send what comes after elsewhere; it is all there when asked again.
    const silent = live.isResumed
      ? setTimeout(() => abandon.reject(new Error("nothing came of it")), PICK_UP_AGAIN)
      : undefined;
    live.onProgress = (...told) => {
      silent?.refresh();
      step.progress(...told);
    };
    const { request } = segment;
    const watch = (): Promise<never>[] =>
      request.kind === "task"
        ? [watchLegacyTask(() => this.#connect(step), step, request, live, timeout === undefined)]
        : [];
    const aborted = () => {
      const { reason } = step.signal;
      if (reason === SETTLED || Date.now() >= step.deadline - SECOND) live.cancel("the job was cancelled");
      abandon.reject(new Error("the job is no longer run here"));
    };
    step.signal.addEventListener("abort", aborted, { once: true });
    if (step.signal.aborted) aborted();
    const timer = timeout === undefined ? undefined : setTimeout(() => late(), timeout);
    const late = () => {
      live.cancel("it took too long");
      const why = `it did not answer within ${Math.round((timeout ?? 0) / SECOND)} s`;
      calls.forget(jobName);
      abandon.reject(
        sentAt === undefined ? new NonRetryableError(`${options.name}: ${why}`) : unknownEffect(options, sentAt, why),
      );
    };
    let event: CallEvent;
    try {
      event = await Promise.race([live.event(n), abandon.promise, ...watch()]);
      // An error may be how the task has ended, or say that there is none.
      if (event.kind === "error" && request.kind === "task") await knownTask(() => this.#connect(step), request);
    } catch (error) {
      if (step.signal.aborted) throw error;
      // The next attempt makes the request anew.
      calls.forget(jobName);
      live.leave();
      if (request.kind !== "call") throw this.#lost(error, request);
      const isOver = isSessionOver(error);
      if ((isOver || error instanceof NotSent) && sentAt !== undefined && !live.isAgain) calls.permit(jobName);
      if (isOver) throw new Error(`${NOT_DONE}: ${options.name} has forgotten the session`);
      throw explained(failure(error, options, sentAt));
    } finally {
      clearTimeout(silent);
      step.signal.removeEventListener("abort", aborted);
      clearTimeout(timer);
      live.onProgress = undefined;
    }
    return legOf(step, event, segment, live.place);
  }

  /** Why nothing is heard any more of a call that was sent: what can be asked for again, or {@link Gone}. */
  #lost(error: unknown, request: Segment["request"]): unknown {
    const isRefused = error instanceof CallRefused && !error.mayGetBetter;
    // A task tells its result to whoever asks for that, and needs no stream.
    const stream = request.kind === "task" ? this.#streamOf(request) : undefined;
    if (stream && (isRefused || error instanceof TaskEnded)) {
      this.#useless.add(stream);
      return new Error((error as Error).message);
    }
    if (isRefused) return new Gone(`what has become of the call cannot be asked for any more: ${error.message}`);
    return error instanceof Lost || error instanceof NotSent
      ? new Error(`${this.#server.options.name}: ${error.message}`)
      : error;
  }

  /** A request for a task's result, and one that a keeper knows, tell what is new only: what is made for event `n` begins with that. */
  #beginning(segment: Segment, n: number): Segment {
    return this.#tellsNews(segment) ? { ...segment, base: n } : segment;
  }

  #tellsNews({ request, kept }: Segment): boolean {
    return kept !== undefined || (request.kind === "task" && this.#streamOf(request) === undefined);
  }

  /** The stream that tells what becomes of a request. */
  #streamOf(request: Segment["request"]): Resumable | undefined {
    if (request.kind === "stream") return request;
    const stream = request.kind === "task" ? request.stream : undefined;
    return stream && !this.#useless.has(stream) ? stream : undefined;
  }

  /** Makes a request when there is a place for it; resolves when it is under way. */
  async #begin(step: Step, segment: Segment): Promise<LiveCall> {
    const { calls, options } = this.#server;
    const { jobName } = this.#job;
    const { kept, sentAt } = segment;
    const isPermitted = calls.mayBegin(jobName);
    if (segment.request.kind === "call" && sentAt !== undefined && !kept && !isPermitted) {
      throw unknownEffect(options, sentAt, "the worker that sent it ended, or the connection did");
    }
    const giveBack = calls.placeOf(jobName) ?? (await this.#server.place(this.#job.signal));
    try {
      if (this.#job.signal.aborted) throw new Error("the job is no longer run here");
      const connection = await this.#server.connection(jobName, step.log);
      calls.takePermit(jobName);
      const live = this.#send(connection, segment, isPermitted ? undefined : kept?.keeper);
      calls.put(jobName, live);
      void this.#afterwards(live, connection, step).finally(giveBack);
      return live;
    } catch (error) {
      if (calls.mayBegin(jobName)) calls.permit(jobName);
      giveBack();
      return explain(error);
    }
  }

  async #afterwards(live: LiveCall, connection: Connection, { log }: Step): Promise<void> {
    await live.ended;
    // What belongs to an earlier session says nothing of this one, which others use.
    const isOwn = live.place.sessionId === connection.sessionId;
    if (isOwn && isSessionOver(live.failed))
      await this.#server.drop(this.#job.jobName, connection, log).catch(() => {});
  }

  /** `keeper`: what may have the request already. */
  #send(connection: Connection, segment: Segment, keeper: string | undefined): LiveCall {
    const { base, request, kept } = segment;
    const stream = this.#streamOf(request);
    const isKept = request.kind === "call" && connection.keeper !== undefined;
    const id = stream?.request ?? kept?.request ?? (isKept ? this.#idOf(base) : requestId());
    const picked = stream && { sessionId: stream.session, protocolVersion: stream.revision };
    const again = keeper === undefined ? undefined : { ...connection.place, sessionId: keeper };
    const place = request.kind === "task" ? request.place : (picked ?? again ?? connection.place);
    const about = {
      base,
      request: id,
      answers: this.#job.answers,
      place,
      isResumed: stream !== undefined,
      isAgain: keeper !== undefined,
      keeper: isKept && !kept ? connection.keeper : undefined,
      questions: this.#tellsNews(segment) ? this.#job.questions : new Map(),
    };
    return new LiveCall(connection, about, (told) => {
      const exchange = { ...told, isKept };
      if (request.kind === "task") {
        const { taskId, place } = request;
        const asked = { ...exchange, task: taskId };
        const under = stream
          ? connection.resume(stream, asked)
          : connection.request("tasks/result", { taskId }, asked, id, place);
        // What is under way there is the task, and not the request for its result.
        const cancel = () => void connection.request("tasks/cancel", { taskId }, {}, requestId(), place);
        return { ...under, cancel };
      }
      if (request.kind === "stream") return connection.resume(request, exchange);
      const { tool, arguments: args } = this.#job.args;
      if (tool === READ) return connection.request("resources/read", args, exchange, id, place);
      const { inputs, state } = request;
      const params = {
        name: tool,
        arguments: args,
        ...(inputs && { inputResponses: inputs }),
        ...(state !== undefined && { requestState: state }),
        ...(asTask(connection, tool) && { task: {} }),
      };
      return connection.request("tools/call", params, exchange, id, place);
    });
  }

  /** The id of a request that may be sent again: the same after a crash, so that a keeper which has it finds it. */
  #idOf(base: number): string {
    const { jobName, deadline } = this.#job;
    return `${OWN}${createHash("sha256").update(`${deadline} ${base} ${jobName}`).digest("hex").slice(0, 32)}`;
  }

  #connect({ log }: Step): Promise<Connection> {
    return this.#server.connection(this.#job.jobName, log);
  }
}
