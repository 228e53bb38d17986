/** What a job of a wrapped server does: it makes one call, and goes on with it where it was, whatever crashes. */
import {
  type Answer,
  type Context,
  HOUR,
  MINUTE,
  NonRetryableError,
  type Question,
  SECOND,
  type Step,
} from "../../core/durable/context.ts";
import { SETTLED } from "../../core/durable/surroundings.ts";
import { type CallArgs, NOT_DONE } from "../job.ts";
import { type Connection, type Resumable, requestId, type Session } from "./connection.ts";
import { NotSent, Refused, RpcError } from "./errors.ts";
import { type CallEvent, LiveCall } from "./live.ts";
import { failure, protocolError, toolAnswer, unknownEffect } from "./outcome.ts";
import type { WrappedServer } from "./server.ts";

type Json = Record<string, unknown>;

/** How long a server that cannot be reached is tried, in milliseconds. */
const PATIENCE = { for: 5 * MINUTE, longest: 20 * SECOND };
/** A task at the server is asked for as long as the job lasts. */
const LASTING = { for: 7 * 24 * HOUR };
/** How often a task is looked at unless its server says, and the bounds of what it may say; in milliseconds. */
const POLL = { usual: SECOND, least: 200, most: 30 * SECOND };

/** A request whose answer the job waits for, and how it is made again in another process. */
interface Segment {
  /** The number of its first event. */
  base: number;
  /** When it was written down that it would be sent, for one that is sent at most once. */
  sentAt?: string;
  request:
    | { kind: "call"; inputs?: Json; state?: unknown }
    | { kind: "task"; taskId: string; place: Session }
    | ({ kind: "stream" } & Resumable);
}

/** What a step has found out: an event of a request, or what its result asks for. */
type Leg =
  | CallEvent
  | { kind: "input"; requests: Json; state?: unknown }
  | { kind: "task"; taskId: string; every?: number; isLegacy: boolean; place: Session };

/** One job: its calls of the context, in their order. */
export async function runCall(server: WrappedServer, ctx: Context, args: CallArgs): Promise<Json> {
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
  readonly #answers = new Map<number, Json>();
  readonly #gone: AbortSignal;
  #segment: Segment = { base: 0, request: { kind: "call" } };

  /** Put behind the names of calls: what an earlier attempt at the job has done is not this one's. */
  readonly #attempt: string;

  constructor(server: WrappedServer, ctx: Context, args: CallArgs) {
    this.#server = server;
    this.#ctx = ctx;
    this.#args = args;
    this.#gone = ctx.signal;
    this.#attempt = /~\d+$/.exec(ctx.jobName)?.[0] ?? "";
  }

  async run(): Promise<Json> {
    let n = 0;
    let leg = await this.#first(n, { kind: "call" });
    for (;;) {
      switch (leg.kind) {
        case "result":
          return leg.result;
        case "error":
          return protocolError(leg.code, leg.message);
        case "stream":
          n += 1;
          this.#segment = { base: n, request: leg };
          leg = await this.#next(this.#ctx, n, `call ${n}${this.#attempt}`);
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
            this.#segment = { base: n, request: { kind: "task", taskId: leg.taskId, place: leg.place } };
            leg = await this.#next(this.#ctx, n, `task ${n}${this.#attempt}`);
          } else return this.#task(n, leg.taskId, leg.every);
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
    this.#answers.set(n, value as Json);
    const { request } = this.#segment;
    const here = () => this.#server.calls.find(this.#ctx.jobName, n)?.answer(n, value as Json) === true;
    if (request.kind !== "task") here();
    else {
      // A task asks once. What was asked in another process is answered from here, in the session that it was asked in.
      await this.#ctx.step(
        `answer ${n}${this.#attempt}`,
        async ({ log }) => {
          if (here()) return null;
          const connection = await this.#server.connection(this.#ctx.jobName, log);
          await connection.respond(request.place, id, value as Json);
          return null;
        },
        { retry: PATIENCE },
      );
    }
    return this.#next(this.#ctx, n + 1, `call ${n + 1}${this.#attempt}`);
  }

  /** The answers to everything that the server has to know before it goes on. */
  async #collect(n: number, requests: Json): Promise<Json> {
    const asked = Object.entries(requests).map(([key, request]) => {
      const { method, params = {} } = request as { method?: string; params?: Json };
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
  async #task(first: number, taskId: string, every: number | undefined): Promise<Json> {
    const { name } = this.#server.options;
    const answered = new Set<string>();
    for (let n = first; ; n++) {
      const seen = await this.#ctx.step(
        `task ${n}${this.#attempt}`,
        (step) => this.#watch(step, taskId, every, answered),
        {
          retry: LASTING,
        },
      );
      if (seen.kind === "input") {
        const inputs = await this.#collect(n, seen.requests);
        for (const key of Object.keys(inputs)) answered.add(key);
        await this.#ctx.step(
          `answer ${n}${this.#attempt}`,
          async ({ log }) => {
            const connection = await this.#server.connection(this.#ctx.jobName, log);
            await connection.request("tasks/update", { taskId, inputResponses: inputs }).result;
            return null;
          },
          { retry: LASTING },
        );
      } else if (seen.kind === "result") return seen.result;
      else if (seen.kind === "error") return protocolError(seen.code, seen.message);
      else throw new NonRetryableError(`${name} has cancelled the task ${taskId} that the call had become`);
    }
  }

  /** Looks at a task until it has ended, or asks something that it has not been told. */
  async #watch(
    { signal, log, progress }: Step,
    taskId: string,
    every = POLL.usual,
    answered: ReadonlySet<string>,
  ): Promise<
    | { kind: "result"; result: Json }
    | { kind: "error"; code: number; message: string }
    | { kind: "input"; requests: Json }
    | { kind: "cancelled" }
  > {
    const { jobName } = this.#ctx;
    const pause = Math.min(Math.max(every, POLL.least), POLL.most);
    let said: unknown;
    for (;;) {
      const connection = await this.#server.connection(jobName, log);
      if (signal.aborted) {
        if (signal.reason === SETTLED) await connection.request("tasks/cancel", { taskId }).result.catch(() => {});
        throw new Error("the job is no longer run here");
      }
      const task = await connection.request("tasks/get", { taskId }).result.catch((error) => {
        if (error instanceof RpcError) {
          throw new NonRetryableError(`the server knows no task ${taskId} any more: ${error.message}`);
        }
        throw error;
      });
      if (task.status === "completed") return { kind: "result", result: toolAnswer(task.result as Json) };
      if (task.status === "failed") {
        const { code, message } = task.error as { code: number; message: string };
        return { kind: "error", code, message };
      }
      if (task.status === "cancelled") return { kind: "cancelled" };
      const open = Object.entries((task.inputRequests ?? {}) as Json).filter(([key]) => !answered.has(key));
      if (task.status === "input_required" && open.length > 0) {
        return { kind: "input", requests: Object.fromEntries(open) };
      }
      if (task.statusMessage !== said && typeof task.statusMessage === "string") {
        said = task.statusMessage;
        progress(0, undefined, task.statusMessage);
      }
      await elapsed(pause, signal);
    }
  }

  /** Waits for event `n`; in a process that knows nothing of it the request is made again first, where that may be. */
  #next(ctx: Context, n: number, name: string, untimed = false): Promise<Leg> {
    const { timeout = HOUR } = this.#server.options;
    const segment = this.#segment;
    const work = (step: Step) => this.#wait(step, n, segment, untimed ? undefined : timeout);
    return ctx.step(name, work, { retry: segment.request.kind === "call" ? PATIENCE : LASTING });
  }

  async #wait(step: Step, n: number, segment: Segment, timeout: number | undefined): Promise<Leg> {
    const { calls, options } = this.#server;
    const { jobName } = this.#ctx;
    const { sentAt } = segment;
    const live =
      calls.find(jobName, n) ??
      (await calls.begin(jobName, segment.base, () => this.#begin(step, beginning(segment, n))));
    live.onProgress = (...told) => step.progress(...told);
    const abandon = Promise.withResolvers<never>();
    abandon.promise.catch(() => {});
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
      const event = await Promise.race([live.event(n), abandon.promise]);
      return legOf(event, segment, live.place);
    } catch (error) {
      if (step.signal.aborted) throw error;
      // The next attempt makes the request anew.
      calls.forget(jobName);
      const isOver = isSessionOver(error);
      if ((isOver || error instanceof NotSent) && sentAt !== undefined) calls.permit(jobName);
      if (isOver && segment.request.kind !== "call") {
        throw new NonRetryableError(
          `${options.name} no longer knows the session in which the call was made: what has become of it is unknown`,
        );
      }
      if (isOver) throw new Error(`${NOT_DONE}: ${options.name} has forgotten the session`);
      const isSafe = segment.request.kind !== "call";
      throw this.#explained(failure(error, options, isSafe ? undefined : sentAt));
    } finally {
      step.signal.removeEventListener("abort", aborted);
      clearTimeout(timer);
      live.onProgress = undefined;
    }
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
        if (this.#gone.aborted) throw new Error("the job is no longer run here");
        const connection = await this.#server.connection(jobName, step.log);
        if (segment.sentAt !== undefined) calls.takePermit(jobName);
        const live = this.#send(connection, segment);
        calls.put(jobName, live);
        begun.resolve(live);
        await live.ended;
        if (isSessionOver(live.failed)) await this.#server.drop(jobName, connection, step.log);
      } catch (error) {
        begun.reject(error);
      }
    };
    void queue.add(begin);
    return begun.promise.catch((error) => this.#explain(error));
  }

  #send(connection: Connection, { base, request }: Segment): LiveCall {
    const id = request.kind === "stream" ? request.request : requestId();
    const place = request.kind === "task" ? request.place : connection.place;
    const about = { base, request: id, answers: this.#answers, place, isResumed: request.kind === "stream" };
    return new LiveCall(connection, about, (exchange) => {
      if (request.kind === "stream") return connection.resume(request, exchange ?? {});
      if (request.kind === "task") {
        const { taskId, place } = request;
        const under = connection.request("tasks/result", { taskId }, exchange, id, place);
        // What is under way there is the task, and not the request for its result.
        const cancel = () => void connection.request("tasks/cancel", { taskId }, {}, requestId(), place);
        return { ...under, cancel };
      }
      const { tool, arguments: args } = this.#args;
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
    return new Error(`${NOT_DONE}: ${error.message}`, { cause: error });
  }
}

/** A task tells what is new only: what is made for event `n` begins with that. */
const beginning = (segment: Segment, n: number): Segment =>
  segment.request.kind === "task" ? { ...segment, base: n } : segment;

/** Whether a call is made as a task of the 2025-11-25 revision: its id is found again after a crash. */
function asTask(connection: Connection, tool: string): boolean {
  const { tasks } = (connection.client.getServerCapabilities() ?? {}) as {
    tasks?: { requests?: { tools?: { call?: unknown } } };
  };
  if (connection.era !== "legacy" || tasks?.requests?.tools?.call === undefined) return false;
  const support = connection.tools.find(({ name }) => name === tool)?.execution?.taskSupport;
  return support === "required" || support === "optional";
}

function legOf(event: CallEvent, { request }: Segment, place: Session): Leg {
  if (event.kind !== "result") return event;
  const { result } = event;
  const ended: Leg = { kind: "result", result: toolAnswer(result) };
  if (request.kind !== "call") return ended;
  if (result.resultType === "input_required") {
    const requests = (result.inputRequests ?? {}) as Json;
    return { kind: "input", requests, ...(result.requestState !== undefined && { state: result.requestState }) };
  }
  const isLegacy = result.resultType !== "task";
  const task = (isLegacy ? result.task : result) as { taskId?: unknown; pollIntervalMs?: unknown } | undefined;
  if (typeof task?.taskId !== "string") return ended;
  const every = Number(task.pollIntervalMs);
  return { kind: "task", taskId: task.taskId, isLegacy, place, ...(every > 0 && { every }) };
}

/** Whether the session is one that the server does not know any more: then it has not looked at the request. */
const isSessionOver = (error: unknown): boolean =>
  error instanceof Refused && (error.status === 404 || (error.status === 400 && /session/i.test(error.message)));

function questionOf({ message, requestedSchema }: Json): Question {
  const schema = requestedSchema as Question["requestedSchema"] | undefined;
  return { message: String(message ?? ""), requestedSchema: schema ?? { type: "object", properties: {} } };
}

/** Resolves after a time, or when the signal is aborted. */
function elapsed(ms: number, signal: AbortSignal): Promise<void> {
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(over.resolve, ms);
  const stop = () => over.resolve();
  signal.addEventListener("abort", stop, { once: true });
  return over.promise.finally(() => {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  });
}
