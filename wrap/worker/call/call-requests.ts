/** The requests of a job. A request is sent, found in flight in this process, or continued from where another process left it. */
import { createHash } from "node:crypto";
import { LOG_LEVEL_META_KEY } from "@modelcontextprotocol/client";
import { NonRetryableError, SECOND, type Step } from "../../../core/author/index.ts";
import { machineClock, SETTLED } from "../../../core/engine/index.ts";
import { splitKey } from "../../../core/resonate/index.ts";
import { type CallArgs, isMethod, NothingDone, type SendRecord } from "../../call-job.ts";
import type { Connection } from "../connection/connection.ts";
import { AnswerLost, CallRefused, hasLostSession, JobMoved, NotSent, OutcomeUnknown } from "../host/errors.ts";
import {
  ID_PREFIX,
  type JsonObject,
  type OpenRequest,
  type RequestHooks,
  type ResumableStream,
  requestId,
  type Session,
} from "../host/open-request.ts";
import type { WrappedServer } from "../wrapped-server.ts";
import { type AwaitedRequest, isTaskCall, outcomeOf, type StepOutcome } from "./awaited-request.ts";
import { type CallEvent, CallInFlight } from "./call-in-flight.ts";
import { isRefusal, revisionFails, withAdvice } from "./other-revision.ts";
import { explain, failure, unknownEffect } from "./outcome.ts";
import { checkTask, requestTask, TaskFinished, watchLegacyTask } from "./remote-tasks.ts";
import { Seat, type Slot } from "./slots.ts";

/** How long a resumed stream may be silent before it is resumed again, in milliseconds. */
const RESUME_TIMEOUT_MS = 10 * SECOND;

interface RequestingJob {
  jobName: string;
  /** Distinguishes the job from an earlier one of the same name. */
  deadline: number;
  /** Aborted when the job is no longer run here. */
  signal: AbortSignal;
  args: CallArgs;
  /** The answers to questions of the 2025 revisions, by event number. */
  answers: ReadonlyMap<number, JsonObject>;
  /** The event numbers of the questions, by question id. */
  questions: ReadonlyMap<string | number, number>;
}

/** What the record of a sending adds to the request, if the call must not be sent again. */
export const recordOf = ({ at, hostRequest }: SendRecord, { once }: CallArgs) =>
  once ? { sentAt: at, ...(hostRequest && { hostRequest }) } : {};

export class CallRequests {
  readonly #server: WrappedServer;
  readonly #job: RequestingJob;
  /** Streams of task results that no longer report anything. */
  readonly #deadStreams = new WeakSet<ResumableStream>();

  constructor(server: WrappedServer, job: RequestingJob) {
    this.#server = server;
    this.#job = job;
  }

  /**
   * Waits for event `n` for at most `timeout` milliseconds. If this process does not know the request, first sends or continues it;
   * a call is sent again only if it may be repeated.
   */
  async event(
    step: Step,
    n: number,
    awaitedRequest: AwaitedRequest,
    timeout: number | undefined,
  ): Promise<StepOutcome> {
    const { calls } = this.#server;
    const { jobName } = this.#job;
    // A request that reports only new events begins with the event that is waited for.
    const next = this.#reportsNewOnly(awaitedRequest) ? { ...awaitedRequest, base: n } : awaitedRequest;
    const current = calls.of(jobName);
    const call = current?.knows(n)
      ? current
      : await calls.begin(jobName, awaitedRequest.base, () => this.begin(step, next));
    let event: CallEvent;
    try {
      event = await this.#wait(step, n, call, awaitedRequest, timeout);
    } catch (error) {
      throw step.signal.aborted ? error : this.#giveUp(error, n, call, awaitedRequest);
    }
    return this.#interpret(step, event, call, awaitedRequest);
  }

  /** Resolves with event `n` of a call. Meanwhile the step reports the call's progress. */
  async #wait(
    step: Step,
    n: number,
    call: CallInFlight,
    { request, sentAt }: AwaitedRequest,
    timeout: number | undefined,
  ): Promise<CallEvent> {
    const { calls, options } = this.#server;
    const { jobName } = this.#job;
    const abandonment = Promise.withResolvers<never>();
    abandonment.promise.catch(() => {});
    // After a stream is resumed, the server may send further events over another stream; resuming again gets all of them.
    const silence = call.options.isResumed
      ? setTimeout(() => abandonment.reject(new Error("nothing came of it")), RESUME_TIMEOUT_MS)
      : undefined;
    call.onProgress = (...progress) => {
      silence?.refresh();
      step.progress(...progress);
    };
    if (call.progress) step.progress(...call.progress);
    const connect = (lost?: Connection) => this.connect(step, lost);
    const task = request.kind === "task" ? request : undefined;
    const loss = task ? watchLegacyTask(connect, step, task, call, timeout === undefined) : abandonment.promise;
    const onAbort = () => {
      const isEnd = step.signal.reason === SETTLED || Date.now() >= step.deadline - SECOND;
      if (isEnd) call.request.cancel("the job was cancelled");
      abandonment.reject(new JobMoved());
    };
    step.signal.addEventListener("abort", onAbort, { once: true });
    if (step.signal.aborted) onAbort();
    const onTimeout = () => {
      call.request.cancel("it took too long");
      const why = `it did not answer within ${Math.round((timeout ?? 0) / SECOND)} s`;
      calls.forget(jobName);
      abandonment.reject(
        sentAt === undefined ? new NonRetryableError(`${options.name}: ${why}`) : unknownEffect(options, sentAt, why),
      );
    };
    const cancelTimeout = timeout === undefined ? undefined : machineClock.after(timeout, onTimeout);
    try {
      const event = await Promise.race([call.event(n), abandonment.promise, loss]);
      // The error may be the task's result, or mean that the server does not know the task.
      if (event.kind === "error" && task) await checkTask(connect, task);
      return event;
    } finally {
      clearTimeout(silence);
      step.signal.removeEventListener("abort", onAbort);
      cancelTimeout?.();
      call.onProgress = undefined;
    }
  }

  /** The outcome that an event is for the job. Falls back to an older revision if the newest one cannot serve the call. */
  async #interpret(
    step: Step,
    event: CallEvent,
    call: CallInFlight,
    awaitedRequest: AwaitedRequest,
  ): Promise<StepOutcome> {
    const { name } = this.#server.options;
    const server = isMethod(this.#job.args.tool) ? undefined : name;
    const isNewest = call.options.session.protocolVersion === undefined;
    if (!isNewest || !revisionFails(event) || !this.#server.fallBack(step.log)) {
      return outcomeOf(step, event, awaitedRequest, call, server);
    }
    if (awaitedRequest.sentAt === undefined || isRefusal(event)) {
      return { kind: "lost", why: `${name} does not serve this in the revision that was spoken` };
    }
    const answer = event.kind === "result" ? { ...event, result: withAdvice(event.result, name) } : event;
    return outcomeOf(step, answer, awaitedRequest, call, server);
  }

  /**
   * Gives up a call whose event `n` does not come, so that the step's next attempt sends the request again; returns the error of
   * this attempt.
   */
  #giveUp(error: unknown, n: number, call: CallInFlight, { base, request, sentAt }: AwaitedRequest): unknown {
    const { calls, options } = this.#server;
    const { jobName } = this.#job;
    calls.forget(jobName);
    call.request.leave();
    if (request.kind !== "call") return this.#lossOf(error, request);
    const isSessionLost = hasLostSession(error);
    if ((isSessionLost || error instanceof NotSent) && sentAt !== undefined && !call.options.isRepeated) {
      calls.permit(jobName, sentAt);
    }
    if (isSessionLost) return new NothingDone(`${options.name} has forgotten the session`);
    // The job counts the losses of a call. One that has asked is sent again by the step, which has the answers to its questions.
    if (error instanceof AnswerLost && sentAt === undefined && n === base) return new OutcomeUnknown(error.message);
    return explain(failure(error, options, sentAt));
  }

  /** The error for a call that was sent and whose events no longer arrive: an error to retry, or {@link OutcomeUnknown}. */
  #lossOf(error: unknown, request: AwaitedRequest["request"]): unknown {
    const isRefused = error instanceof CallRefused && error.why !== "busy";
    // The result of a task can be requested without the stream.
    const stream = request.kind === "task" ? this.#streamOf(request) : undefined;
    if (stream && (isRefused || error instanceof TaskFinished)) {
      this.#deadStreams.add(stream);
      return new Error((error as Error).message);
    }
    if (isRefused) {
      return new OutcomeUnknown(`the server no longer says what became of the call: ${error.message}`);
    }
    return error instanceof AnswerLost || error instanceof NotSent
      ? new Error(`${this.#server.options.name}: ${error.message}`)
      : error;
  }

  /** Whether the request reports only events that no process has had. */
  #reportsNewOnly({ request, hostRequest }: AwaitedRequest): boolean {
    return hostRequest !== undefined || (request.kind === "task" && this.#streamOf(request) === undefined);
  }

  #streamOf(request: AwaitedRequest["request"]): ResumableStream | undefined {
    if (request.kind === "stream") return request;
    const stream = request.kind === "task" ? request.stream : undefined;
    return stream && !this.#deadStreams.has(stream) ? stream : undefined;
  }

  /** Waits for a connection and a slot, so that the call goes out right after the record of its sending. */
  async prepare(step: Step): Promise<SendRecord> {
    const { jobName, args, signal } = this.#job;
    let slot: Slot | undefined;
    try {
      await this.connect(step);
      slot = await this.#server.takeSlot(jobName, step.signal, step);
      // The connection may have ended while the call waited for its slot.
      const { host } = await this.connect(step);
      // If the job has moved to another worker, that worker permits its own call.
      step.signal.throwIfAborted();
      // The slot outlasts the step: without the job, nobody else would free it.
      const at = new Date().toISOString();
      this.#server.calls.permit(jobName, args.once ? at : undefined, slot, signal);
      return { at, ...(args.once && host !== undefined && { hostRequest: { host, request: requestId() } }) };
    } catch (error) {
      slot?.free();
      throw explain(error);
    }
  }

  /** Waits for a slot and sends a request; resolves when the request is in flight. */
  async begin(step: Step, awaitedRequest: AwaitedRequest): Promise<CallInFlight> {
    const { calls, options } = this.#server;
    const { jobName, signal } = this.#job;
    const { hostRequest, sentAt } = awaitedRequest;
    const permit = calls.takePermit(jobName, sentAt);
    if (awaitedRequest.request.kind === "call" && sentAt !== undefined && !hostRequest && !permit) {
      throw unknownEffect(options, sentAt, "the worker that sent it ended, or the connection did");
    }
    let slot = permit?.slot;
    try {
      slot ??= await this.#server.takeSlot(jobName, signal, step);
      if (signal.aborted) throw new JobMoved();
      const connection = await this.connect(step);
      const { log } = this.#job.args;
      if (log !== undefined) await connection.requestLogs(log);
      const call = this.#send(connection, awaitedRequest, permit ? undefined : hostRequest?.host);
      calls.put(jobName, call);
      // The call outlives this execution, and gets its answer from the next one.
      const end = new AbortController();
      const seat = new Seat(slot, () => this.#server.takeSlot(jobName, end.signal, step));
      // A process that serves only this call stays with it, also while a question waits.
      if (options.processes === undefined) call.seat = seat;
      void this.#dropLostSession(call, connection, step).finally(() => {
        end.abort();
        seat.end();
      });
      return call;
    } catch (error) {
      if (permit) calls.permit(jobName, sentAt);
      slot?.free();
      throw explain(error);
    }
  }

  /** Drops the connection if the call ends because the server has forgotten the connection's session. */
  async #dropLostSession(call: CallInFlight, connection: Connection, { log }: Step): Promise<void> {
    await call.completion;
    const isCurrent = call.options.session.sessionId === connection.session.sessionId;
    if (isCurrent && hasLostSession(call.failure)) {
      await this.#server.drop(this.#job.jobName, connection, log).catch(() => {});
    }
  }

  /** `host`: the program host that may already have the request. */
  #send(connection: Connection, awaitedRequest: AwaitedRequest, host: string | undefined): CallInFlight {
    const { base, request, hostRequest } = awaitedRequest;
    const stream = this.#streamOf(request);
    const isRecoverable = request.kind === "call" && connection.host !== undefined;
    const id = stream?.request ?? hostRequest?.request ?? (isRecoverable ? this.#idOf(base) : requestId());
    const session = sessionOf(request, stream, connection, host);
    const { sessionId, protocolVersion: revision = connection.revision } = session;
    const position = (eventId: string | undefined): CallEvent | undefined => {
      const { host, era } = connection;
      if (isRecoverable && !hostRequest && host !== undefined) return { kind: "host", host, request: id };
      if (stream || era !== "legacy" || sessionId === undefined || eventId === undefined) return undefined;
      return { kind: "stream", session: sessionId, request: id, event: eventId, revision };
    };
    const options = {
      isTool: !isMethod(this.#job.args.tool),
      base,
      answers: this.#job.answers,
      session,
      isResumed: stream !== undefined,
      isRepeated: host !== undefined,
      position,
      questions: this.#reportsNewOnly(awaitedRequest) ? this.#job.questions : new Map(),
      log: this.#job.args.log,
    };
    const caller = splitKey(this.#job.jobName).key;
    return new CallInFlight(options, (callHooks) =>
      this.#open(connection, request, { ...callHooks, isRecoverable, id, session, caller }),
    );
  }

  #open(connection: Connection, request: AwaitedRequest["request"], hooks: RequestHooks): OpenRequest {
    if (request.kind === "stream") return connection.resume(request, hooks);
    if (request.kind === "call") {
      const { tool, arguments: args } = this.#job.args;
      if (isMethod(tool)) return connection.request(tool, args, hooks);
      return connection.request("tools/call", this.#callParams(connection, request), hooks);
    }
    const { taskId, session } = request;
    const stream = this.#streamOf(request);
    const taskHooks = { ...hooks, task: taskId };
    const openRequest = stream
      ? connection.resume(stream, taskHooks)
      : connection.request("tasks/result", { taskId }, taskHooks);
    // Cancels the task, not just the request for its result.
    const cancel = () => void requestTask(async () => connection, "tasks/cancel", { taskId, session }).catch(() => {});
    return { ...openRequest, cancel };
  }

  #callParams(connection: Connection, { inputs, state }: { inputs?: JsonObject; state?: unknown }): JsonObject {
    const { tool, arguments: args, meta, log } = this.#job.args;
    const logMeta = log !== undefined && connection.era === "modern" ? { [LOG_LEVEL_META_KEY]: log } : undefined;
    return {
      name: tool,
      arguments: args,
      ...((meta || logMeta) && { _meta: { ...meta, ...logMeta } }),
      ...(inputs && { inputResponses: inputs }),
      ...(state !== undefined && { requestState: state }),
      ...(isTaskCall(connection, tool) && { task: {} }),
    };
  }

  /** The id of a request that may be sent again: the same after a crash, so that a program host recognizes it. */
  #idOf(base: number): string {
    const { jobName, deadline } = this.#job;
    return `${ID_PREFIX}${createHash("sha256").update(`${deadline} ${base} ${jobName}`).digest("hex").slice(0, 32)}`;
  }

  /** `lost`: a connection whose session the server has forgotten. */
  async connect({ log, progress }: Step, lost?: Connection): Promise<Connection> {
    if (lost) await this.#server.drop(this.#job.jobName, lost, log);
    return this.#server.connection(this.#job.jobName, log, (message) => progress(0, undefined, message));
  }
}

/** The session to which a request belongs. `host`: the program host that may already have the request. */
function sessionOf(
  request: AwaitedRequest["request"],
  stream: ResumableStream | undefined,
  connection: Connection,
  host: string | undefined,
): Session {
  if (request.kind === "task") return request.session;
  if (stream) return { sessionId: stream.session, protocolVersion: stream.revision };
  return host === undefined ? connection.session : { ...connection.session, sessionId: host };
}
