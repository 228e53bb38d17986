/** What a job of a wrapped server does: it makes one call, and goes on with it where it was, whatever crashes. */
import {
  type Answer,
  type Context,
  HOUR,
  MINUTE,
  NonRetryableError,
  SECOND,
  type Step,
} from "../../core/durable/context.ts";
import { SETTLED } from "../../core/durable/surroundings.ts";
import { type CallArgs, NOT_DONE, READ } from "../job.ts";
import { type Connection, type Resumable, requestId } from "./connection.ts";
import { CallRefused, Gone, Lost, NotSent, Unsendable } from "./errors.ts";
import { type CallEvent, LiveCall } from "./live.ts";
import { failure, protocolError, unknownEffect } from "./outcome.ts";
import {
  asTask,
  isSessionOver,
  type JsonObject,
  type Leg,
  legOf,
  questionOf,
  resumable,
  type Segment,
} from "./segment.ts";
import type { WrappedServer } from "./server.ts";
import { knownTask, TaskEnded, watchLegacyTask, watchTask } from "./tasks.ts";

/** How long a server that cannot be reached is tried, in milliseconds. */
const PATIENCE = { for: 5 * MINUTE, longest: 20 * SECOND };
/** A task at the server is asked for as long as the job lasts. */
const LASTING = { for: 7 * 24 * HOUR };
/** How often a call that may be repeated is made anew when what became of it is lost at the server. */
const MAX_LOSSES = 3;
/** How long a stream that was picked up may be silent of the call's end, in milliseconds; then it is picked up again. */
const PICK_UP_AGAIN = 30 * SECOND;

/** One job: its calls of the context, in their order. */
export async function runCall(server: WrappedServer, ctx: Context, args: CallArgs): Promise<JsonObject> {
  const call = new Call(server, ctx, args);
  try {
    return await call.run();
  } finally {
    server.calls.forget(ctx.jobName);
  }
}

class Call {
  readonly #server: WrappedServer;
  readonly #ctx: Context;
  readonly #args: CallArgs;
  /** What was answered to the questions of the 2025 revisions, by the numbers of the events. */
  readonly #answers = new Map<number, JsonObject>();
  readonly #signal: AbortSignal;
  #segment: Segment = { base: 0, request: { kind: "call" } };
  /** Whether the stream of a task's result is of no use any more. */
  #isStreamOver = false;

  /** Put behind the names of calls: what an earlier attempt at the job has done is not this one's. */
  readonly #attempt: string;

  constructor(server: WrappedServer, ctx: Context, args: CallArgs) {
    this.#server = server;
    this.#ctx = ctx;
    this.#args = args;
    this.#signal = ctx.signal;
    this.#attempt = /~\d+$/.exec(ctx.jobName)?.[0] ?? "";
  }

  async run(): Promise<JsonObject> {
    let n = 0;
    let losses = 0;
    let leg = await this.#first(n, { kind: "call" });
    for (;;) {
      switch (leg.kind) {
        case "result":
          return leg.result;
        case "error":
          return protocolError(leg.code, leg.message);
        case "stream":
          n += 1;
          this.#segment = { base: n, request: resumable(this.#segment.request, leg) };
          leg = await this.#next(this.#ctx, n, `call ${n}${this.#attempt}`);
          break;
        case "lost":
          n += 1;
          losses += 1;
          if (losses > MAX_LOSSES) throw new NonRetryableError(leg.why);
          leg = await this.#first(n, { kind: "call" });
          break;
        case "question":
          leg = await this.#asked(n, leg);
          n += 1;
          break;
        case "input": {
          const inputs = await this.#collect(n, leg.requests);
          n += 1;
          leg = await this.#first(n, { kind: "call", inputs, ...(leg.state !== undefined && { state: leg.state }) });
          break;
        }
        case "task":
          n += 1;
          if (leg.isLegacy) {
            this.#segment = { base: n, request: leg };
            this.#isStreamOver = false;
            leg = await this.#next(this.#ctx, n, `task ${n}${this.#attempt}`);
          } else {
            const ended = await this.#task(n, leg.taskId, leg.every);
            n = ended.n;
            leg = ended.leg;
          }
          break;
      }
    }
  }

  /** Sends a request, at most once where that is to be, and waits for what comes of it. */
  async #first(n: number, request: Segment["request"]): Promise<Leg> {
    const number = (n === 0 ? "" : ` ${n}`) + this.#attempt;
    this.#segment = { base: n, request };
    if (this.#args.once) {
      // What stands here after a crash was perhaps sent. Whether it was, the process knows that has written it down.
      this.#segment.sentAt = await this.#ctx.step(
        `send${number}`,
        async ({ log }) => {
          await this.#server.connection(this.#ctx.jobName, log).catch((error) => this.#explain(error));
          this.#server.calls.permit(this.#ctx.jobName);
          return new Date().toISOString();
        },
        { retry: PATIENCE },
      );
    }
    return this.#next(this.#ctx, n, `call${number}`);
  }

  /** A question: waits for its answer, or for the call to end without. */
  async #asked(n: number, { id, params }: Extract<CallEvent, { kind: "question" }>): Promise<Leg> {
    const question = questionOf(params);
    const { winner, value } = await this.#ctx.race(
      {
        answer: (ctx) => ctx.ask("question", question),
        call: (ctx) => this.#next(ctx, n + 1, "call", true),
      },
      { name: `question ${n}${this.#attempt}` },
    );
    if (winner === "call") return value as Leg;
    this.#answers.set(n, value as JsonObject);
    const { request } = this.#segment;
    const here = () => this.#server.calls.find(this.#ctx.jobName, n)?.answer(n, value as JsonObject) === true;
    if (request.kind !== "task") here();
    else {
      // A task asks once. What was asked in another process is answered from here, in the session that it was asked in.
      await this.#ctx.step(
        `answer ${n}${this.#attempt}`,
        async ({ log }) => {
          if (here()) return null;
          const connection = await this.#server.connection(this.#ctx.jobName, log);
          await connection.respond(request.place, id, value as JsonObject);
          return null;
        },
        { retry: PATIENCE },
      );
    }
    return this.#next(this.#ctx, n + 1, `call ${n + 1}${this.#attempt}`);
  }

  /** The answers to everything that the server has to know before it goes on. */
  async #collect(n: number, requests: JsonObject): Promise<JsonObject> {
    const asked = Object.entries(requests).map(([key, request]) => {
      const { method, params = {} } = request as { method?: string; params?: JsonObject };
      if (method !== "elicitation/create" || (params.mode ?? "form") !== "form") {
        throw new NonRetryableError(
          `${this.#server.options.name} asks for ${method}${params.mode === undefined ? "" : ` (${params.mode})`}: durable-mcp-edge passes on questions of the form mode only`,
        );
      }
      return [key, questionOf(params)] as const;
    });
    const answers = asked.map(async ([key, question]): Promise<[string, Answer]> => {
      return [key, await this.#ctx.ask(`question ${n} ${key}`.slice(0, 150), question)];
    });
    return Object.fromEntries(await Promise.all(answers));
  }

  /** A task of the 2026 revision, which the server goes on with by itself: its id is all that has to be known of it. */
  async #task(first: number, taskId: string, every: number | undefined): Promise<{ n: number; leg: Leg }> {
    const answered = new Set<string>();
    for (let n = first; ; n++) {
      const look = (step: Step) =>
        watchTask(() => this.#connect(step), step, taskId, every, answered).catch((error) => this.#gone(error));
      const leg = await this.#ctx.step(`task ${n}${this.#attempt}`, look, { retry: LASTING });
      if (leg.kind !== "input") return { n, leg };
      const inputs = await this.#collect(n, leg.requests);
      for (const key of Object.keys(inputs)) answered.add(key);
      const tell = async (step: Step) => {
        const connection = await this.#connect(step);
        await connection.request("tasks/update", { taskId, inputResponses: inputs }).result;
        return null;
      };
      await this.#ctx.step(`answer ${n}${this.#attempt}`, tell, { retry: LASTING });
    }
  }

  #connect({ log }: Step): Promise<Connection> {
    return this.#server.connection(this.#ctx.jobName, log);
  }

  /** What has become of the call will not be known: it is made again, where that may be. */
  #gone(error: unknown): Leg {
    if (!(error instanceof Gone)) throw error;
    const why = `${this.#server.options.name}: ${error.message}`;
    if (!this.#args.once) return { kind: "lost", why };
    throw new NonRetryableError(`${why}. Whether the call had its effect is unknown; it is not sent again.`);
  }

  /** Waits for event `n`; in a process that knows nothing of it the request is made again first, where that may be. */
  #next(ctx: Context, n: number, name: string, untimed = false): Promise<Leg> {
    const { timeout = HOUR } = this.#server.options;
    const segment = this.#segment;
    const work = (step: Step) =>
      this.#wait(step, n, segment, untimed ? undefined : timeout).catch((error) => this.#gone(error));
    return ctx.step(name, work, { retry: segment.request.kind === "call" ? PATIENCE : LASTING });
  }

  async #wait(step: Step, n: number, segment: Segment, timeout: number | undefined): Promise<Leg> {
    const { calls, options } = this.#server;
    const { jobName } = this.#ctx;
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
    try {
      const event = await Promise.race([live.event(n), abandon.promise, ...watch()]);
      // An error may be how the task has ended, or say that there is none.
      if (event.kind === "error" && request.kind === "task") await knownTask(() => this.#connect(step), request);
      return legOf(event, segment, live.place);
    } catch (error) {
      if (step.signal.aborted) throw error;
      // The next attempt makes the request anew.
      calls.forget(jobName);
      live.leave();
      if (request.kind !== "call") throw this.#lost(error, request);
      const isOver = isSessionOver(error);
      if ((isOver || error instanceof NotSent) && sentAt !== undefined) calls.permit(jobName);
      if (isOver) throw new Error(`${NOT_DONE}: ${options.name} has forgotten the session`);
      throw this.#explained(failure(error, options, sentAt));
    } finally {
      clearTimeout(silent);
      step.signal.removeEventListener("abort", aborted);
      clearTimeout(timer);
      live.onProgress = undefined;
    }
  }

  /** Why nothing is heard any more of a call that was sent: what can be asked for again, or {@link Gone}. */
  #lost(error: unknown, request: Segment["request"]): unknown {
    const isRefused = error instanceof CallRefused && !error.mayGetBetter;
    // A task tells its result to whoever asks for that, and needs no stream.
    const hasStream = request.kind === "task" && request.stream !== undefined && !this.#isStreamOver;
    if (hasStream && (isRefused || error instanceof TaskEnded)) {
      this.#isStreamOver = true;
      return new Error((error as Error).message);
    }
    if (isRefused) return new Gone(`what has become of the call cannot be asked for any more: ${error.message}`);
    return error instanceof Lost || error instanceof NotSent
      ? new Error(`${this.#server.options.name}: ${error.message}`)
      : error;
  }

  /** A request for a task's result tells what is new only: what is made for event `n` begins with that. */
  #beginning(segment: Segment, n: number): Segment {
    const isNew = segment.request.kind === "task" && this.#streamOf(segment.request) === undefined;
    return isNew ? { ...segment, base: n } : segment;
  }

  /** The stream that tells what becomes of a request. */
  #streamOf(request: Segment["request"]): Resumable | undefined {
    if (request.kind === "stream") return request;
    return request.kind === "task" && !this.#isStreamOver ? request.stream : undefined;
  }

  /** Makes a request when there is a place for it; resolves when it is under way. */
  async #begin(step: Step, segment: Segment): Promise<LiveCall> {
    const { calls, queue, options } = this.#server;
    const { jobName } = this.#ctx;
    if (segment.request.kind === "call" && segment.sentAt !== undefined && !calls.mayBegin(jobName)) {
      throw unknownEffect(options, segment.sentAt, "the worker that sent it ended, or the connection did");
    }
    const begun = Promise.withResolvers<LiveCall>();
    const begin = async () => {
      try {
        if (this.#signal.aborted) throw new Error("the job is no longer run here");
        const connection = await this.#server.connection(jobName, step.log);
        if (segment.sentAt !== undefined) calls.takePermit(jobName);
        const live = this.#send(connection, segment);
        calls.put(jobName, live);
        begun.resolve(live);
        await live.ended;
        // What belongs to an earlier session says nothing of this one, which others use.
        const isOwn = live.place.sessionId === connection.sessionId;
        if (isOwn && isSessionOver(live.failed)) await this.#server.drop(jobName, connection, step.log);
      } catch (error) {
        begun.reject(error);
      }
    };
    void queue.add(begin);
    return begun.promise.catch((error) => this.#explain(error));
  }

  #send(connection: Connection, { base, request }: Segment): LiveCall {
    const stream = this.#streamOf(request);
    const id = stream?.request ?? requestId();
    const picked = stream && { sessionId: stream.session, protocolVersion: stream.revision };
    const place = request.kind === "task" ? request.place : (picked ?? connection.place);
    const about = { base, request: id, answers: this.#answers, place, isResumed: stream !== undefined };
    return new LiveCall(connection, about, (exchange) => {
      if (request.kind === "task") {
        const { taskId, place } = request;
        const told = { ...exchange, task: taskId };
        const under = stream
          ? connection.resume(stream, told)
          : connection.request("tasks/result", { taskId }, told, id, place);
        // What is under way there is the task, and not the request for its result.
        const cancel = () => void connection.request("tasks/cancel", { taskId }, {}, requestId(), place);
        return { ...under, cancel };
      }
      if (request.kind === "stream") return connection.resume(request, exchange ?? {});
      const { tool, arguments: args } = this.#args;
      if (tool === READ) return connection.request("resources/read", args, exchange, id);
      const { inputs, state } = request;
      const params = {
        name: tool,
        arguments: args,
        ...(inputs && { inputResponses: inputs }),
        ...(state !== undefined && { requestState: state }),
        ...(asTask(connection, tool) && { task: {} }),
      };
      return connection.request("tools/call", params, exchange, id);
    });
  }

  #explain(error: unknown): never {
    throw this.#explained(error);
  }

  #explained(error: unknown): unknown {
    if (!(error instanceof NotSent)) return error;
    const words = `${NOT_DONE}: ${error.message}`;
    return error instanceof Unsendable ? new NonRetryableError(words) : new Error(words, { cause: error });
  }
}
