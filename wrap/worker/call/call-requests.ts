/** The requests of a job. A request is made, found in flight in this process, or continued from where another process left it. */
import { createHash } from "node:crypto";
import { LOG_LEVEL_META_KEY } from "@modelcontextprotocol/client";
import { NonRetryableError, SECOND, type Step } from "../../../core/author/context.ts";
import { machineClock } from "../../../core/engine/clock.ts";
import { SETTLED } from "../../../core/engine/runtime.ts";
import { splitKey } from "../../../core/resonate/ids.ts";
import { type CallArgs, isMethod, NOT_DONE, type Sent } from "../../call-job.ts";
import type { Connection } from "../connection/connection.ts";
import { AnswerLost, CallRefused, NotSent, OutcomeUnknown } from "../connection/errors.ts";
import { ID_PREFIX, type JsonObject, type ResumableStream, requestId } from "../connection/open-request.ts";
import type { WrappedServer } from "../wrapped-server.ts";
import { type AwaitedRequest, isMadeAsTask, isSessionOver, outcomeOf, type StepOutcome } from "./awaited-request.ts";
import { type CallEvent, CallInFlight } from "./call-in-flight.ts";
import { isRefusal, revisionFails, withAdvice } from "./other-revision.ts";
import { explained, failure, unknownEffect } from "./outcome.ts";
import { ask, checkTask, TaskEnded, watchLegacyTask } from "./remote-tasks.ts";
import { Seat, type Slot } from "./slots.ts";

/** How long a resumed stream may be silent before it is resumed again, in milliseconds. */
const RESUME_AGAIN = 10 * SECOND;

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

/** The record that a call was sent, if the call must not be sent again. */
export const recordOf = ({ at, kept }: Sent, { once }: CallArgs) => (once ? { sentAt: at, ...(kept && { kept }) } : {});

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
   * Waits for event `n` for at most `timeout` milliseconds. If this process does not know the request, first makes or continues it;
   * a call is made again only if it may be repeated.
   */
  async event(step: Step, n: number, awaited: AwaitedRequest, timeout: number | undefined): Promise<StepOutcome> {
    const { calls, options } = this.#server;
    const { jobName } = this.#job;
    const { request, sentAt } = awaited;
    // A request that reports only new events begins with the event that is waited for.
    const next = this.#reportsNewOnly(awaited) ? { ...awaited, base: n } : awaited;
    const known = calls.of(jobName);
    const call = known?.knows(n) ? known : await calls.begin(jobName, awaited.base, () => this.begin(step, next));
    const abandoned = Promise.withResolvers<never>();
    abandoned.promise.catch(() => {});
    // After a stream is resumed, the server may send further events over another stream; resuming again gets all of them.
    const silence = call.options.isResumed
      ? setTimeout(() => abandoned.reject(new Error("nothing came of it")), RESUME_AGAIN)
      : undefined;
    call.onProgress = (...progress) => {
      silence?.refresh();
      step.progress(...progress);
    };
    if (call.progress) step.progress(...call.progress);
    const connect = () => this.connect(step);
    const isTask = request.kind === "task";
    const lost = isTask ? watchLegacyTask(connect, step, request, call, timeout === undefined) : abandoned.promise;
    const onAbort = () => {
      const isEnded = step.signal.reason === SETTLED || Date.now() >= step.deadline - SECOND;
      if (isEnded) call.request.cancel("the job was cancelled");
      abandoned.reject(new Error("the job is no longer run here"));
    };
    step.signal.addEventListener("abort", onAbort, { once: true });
    if (step.signal.aborted) onAbort();
    const onTimeout = () => {
      call.request.cancel("it took too long");
      const why = `it did not answer within ${Math.round((timeout ?? 0) / SECOND)} s`;
      calls.forget(jobName);
      abandoned.reject(
        sentAt === undefined ? new NonRetryableError(`${options.name}: ${why}`) : unknownEffect(options, sentAt, why),
      );
    };
    const cancelTimeout = timeout === undefined ? undefined : machineClock.after(timeout, onTimeout);
    let event: CallEvent;
    try {
      event = await Promise.race([call.event(n), abandoned.promise, lost]);
      // The error may be the task's result, or mean that the server does not know the task.
      if (event.kind === "error" && isTask) await checkTask(connect, request);
    } catch (error) {
      if (step.signal.aborted) throw error;
      throw this.#failed(error, n, call, awaited);
    } finally {
      clearTimeout(silence);
      step.signal.removeEventListener("abort", onAbort);
      cancelTimeout?.();
      call.onProgress = undefined;
    }
    const isNewest = call.options.session.protocolVersion === undefined;
    if (isNewest && revisionFails(event) && this.#server.speakOlder(step.log)) {
      const why = `${options.name} does not serve this in the revision that was spoken`;
      if (sentAt === undefined || isRefusal(event)) return { kind: "lost", why };
      if (event.kind === "result") event = { kind: "result", result: withAdvice(event.result, options.name) };
    }
    const server = isMethod(this.#job.args.tool) ? undefined : options.name;
    return outcomeOf(step, event, awaited, call, server);
  }

  /**
   * Gives up a call whose event `n` does not come, so that the step's next attempt makes the request again; returns the error of
   * this attempt.
   */
  #failed(error: unknown, n: number, call: CallInFlight, { base, request, sentAt }: AwaitedRequest): unknown {
    const { calls, options } = this.#server;
    const { jobName } = this.#job;
    calls.forget(jobName);
    call.request.leave();
    if (request.kind !== "call") return this.#lost(error, request);
    const isOver = isSessionOver(error);
    if ((isOver || error instanceof NotSent) && sentAt !== undefined && !call.options.isRepeated)
      calls.permit(jobName, sentAt);
    if (isOver) return new Error(`${NOT_DONE}: ${options.name} has forgotten the session`);
    // The job counts the losses of a call. One that has asked is made again by the step, which has the answers to its questions.
    if (error instanceof AnswerLost && sentAt === undefined && n === base) return new OutcomeUnknown(error.message);
    return explained(failure(error, options, sentAt));
  }

  /** The error for a call that was sent and whose events no longer arrive: an error to retry, or {@link OutcomeUnknown}. */
  #lost(error: unknown, request: AwaitedRequest["request"]): unknown {
    const isRefused = error instanceof CallRefused && !error.isTemporary;
    // The result of a task can be requested without the stream.
    const stream = request.kind === "task" ? this.#streamOf(request) : undefined;
    if (stream && (isRefused || error instanceof TaskEnded)) {
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

  #reportsNewOnly({ request, kept }: AwaitedRequest): boolean {
    return kept !== undefined || (request.kind === "task" && this.#streamOf(request) === undefined);
  }

  #streamOf(request: AwaitedRequest["request"]): ResumableStream | undefined {
    if (request.kind === "stream") return request;
    const stream = request.kind === "task" ? request.stream : undefined;
    return stream && !this.#deadStreams.has(stream) ? stream : undefined;
  }

  /** Waits for a connection and a slot, so that the call goes out right after the record of its sending. */
  async prepare(step: Step): Promise<Sent> {
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
      return { at, ...(args.once && host !== undefined && { kept: { keeper: host, request: requestId() } }) };
    } catch (error) {
      slot?.free();
      throw explained(error);
    }
  }

  /** Waits for a slot and makes a request; resolves when the request is in flight. */
  async begin(step: Step, awaited: AwaitedRequest): Promise<CallInFlight> {
    const { calls, options } = this.#server;
    const { jobName, signal } = this.#job;
    const { kept, sentAt } = awaited;
    const permit = calls.takePermit(jobName, sentAt);
    if (awaited.request.kind === "call" && sentAt !== undefined && !kept && !permit) {
      throw unknownEffect(options, sentAt, "the worker that sent it ended, or the connection did");
    }
    let slot = permit?.slot;
    try {
      slot ??= await this.#server.takeSlot(jobName, signal, step);
      if (signal.aborted) throw new Error("the job is no longer run here");
      const connection = await this.connect(step);
      const { log } = this.#job.args;
      if (log !== undefined) await connection.logFrom(log);
      const call = this.#send(connection, awaited, permit ? undefined : kept?.keeper);
      calls.put(jobName, call);
      // The call outlives this execution, and gets its answer from the next one.
      const over = new AbortController();
      const seat = new Seat(slot, () => this.#server.takeSlot(jobName, over.signal, step));
      // A process that serves only this call stays with it, also while a question waits.
      if (options.processes === undefined) call.seat = seat;
      void this.#dropLostSession(call, connection, step).finally(() => {
        over.abort();
        seat.end();
      });
      return call;
    } catch (error) {
      if (permit) calls.permit(jobName, sentAt);
      slot?.free();
      throw explained(error);
    }
  }

  /** Drops the connection if the call ends because the server has forgotten the connection's session. */
  async #dropLostSession(call: CallInFlight, connection: Connection, { log }: Step): Promise<void> {
    await call.ended;
    const isCurrent = call.options.session.sessionId === connection.session.sessionId;
    if (isCurrent && isSessionOver(call.failed)) {
      await this.#server.drop(this.#job.jobName, connection, log).catch(() => {});
    }
  }

  /** `host`: the program host that may already have the request. */
  #send(connection: Connection, awaited: AwaitedRequest, host: string | undefined): CallInFlight {
    const { base, request, kept } = awaited;
    const stream = this.#streamOf(request);
    const isKept = request.kind === "call" && connection.host !== undefined;
    const id = stream?.request ?? kept?.request ?? (isKept ? this.#idOf(base) : requestId());
    const resumed = stream && { sessionId: stream.session, protocolVersion: stream.revision };
    const repeated = host === undefined ? undefined : { ...connection.session, sessionId: host };
    const session = request.kind === "task" ? request.session : (resumed ?? repeated ?? connection.session);
    const { sessionId, protocolVersion: revision = connection.revision } = session;
    const position = (event: string | undefined): CallEvent | undefined => {
      const { host, era } = connection;
      if (isKept && !kept && host !== undefined) return { kind: "kept", keeper: host, request: id };
      if (stream || era !== "legacy" || sessionId === undefined || event === undefined) return undefined;
      return { kind: "stream", session: sessionId, request: id, event, revision };
    };
    const options = {
      base,
      answers: this.#job.answers,
      session,
      isResumed: stream !== undefined,
      isRepeated: host !== undefined,
      position,
      questions: this.#reportsNewOnly(awaited) ? this.#job.questions : new Map(),
      log: this.#job.args.log,
    };
    return new CallInFlight(options, (given) => {
      const hooks = { ...given, isKept, id, session, caller: splitKey(this.#job.jobName).key };
      if (request.kind === "task") {
        const { taskId } = request;
        const taskHooks = { ...hooks, task: taskId };
        const open = stream
          ? connection.resume(stream, taskHooks)
          : connection.request("tasks/result", { taskId }, taskHooks);
        // Cancels the task, not just the request for its result.
        const cancel = () => void ask(async () => connection, "tasks/cancel", { taskId, session }).catch(() => {});
        return { ...open, cancel };
      }
      if (request.kind === "stream") return connection.resume(request, hooks);
      const { tool, arguments: args, meta, log } = this.#job.args;
      if (isMethod(tool)) return connection.request(tool, args, hooks);
      const asksForLogs = log !== undefined && connection.era === "modern";
      const { inputs, state } = request;
      const params = {
        name: tool,
        arguments: args,
        ...((meta || asksForLogs) && { _meta: { ...meta, ...(asksForLogs && { [LOG_LEVEL_META_KEY]: log }) } }),
        ...(inputs && { inputResponses: inputs }),
        ...(state !== undefined && { requestState: state }),
        ...(isMadeAsTask(connection, tool) && { task: {} }),
      };
      return connection.request("tools/call", params, hooks);
    });
  }

  /** The id of a request that may be sent again: the same after a crash, so that a program host recognizes it. */
  #idOf(base: number): string {
    const { jobName, deadline } = this.#job;
    return `${ID_PREFIX}${createHash("sha256").update(`${deadline} ${base} ${jobName}`).digest("hex").slice(0, 32)}`;
  }

  connect({ log, progress }: Step): Promise<Connection> {
    return this.#server.connection(this.#job.jobName, log, (what) => progress(0, undefined, what));
  }
}
