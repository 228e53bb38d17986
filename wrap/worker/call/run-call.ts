/** The durable function of a wrapped server's jobs: it makes one call, and continues it after a crash. */
import {
  type Answer,
  type Context,
  DeadlineExceeded,
  HOUR,
  JobCancelled,
  MINUTE,
  NonRetryableError,
  SECOND,
  type Step,
} from "../../../core/author/index.ts";
import { outside } from "../../../core/engine/index.ts";
import { pause } from "../../../core/resonate/index.ts";
import type { CallArgs } from "../../call-job.ts";
import type { Connection } from "../connection/connection.ts";
import { AnswerLost, OutcomeUnknown, RpcError } from "../host/errors.ts";
import type { JsonObject } from "../host/open-request.ts";
import type { WrappedServer } from "../wrapped-server.ts";
import { type AwaitedRequest, continuation, questionOf, type RemoteTask, type StepOutcome } from "./awaited-request.ts";
import type { CallEvent } from "./call-in-flight.ts";
import { CallRequests, recordOf } from "./call-requests.ts";
import { protocolError } from "./outcome.ts";
import { requestTask, watchTask } from "./remote-tasks.ts";

/** How long an unreachable server is retried. */
const CALL_RETRY = { maxDuration: 5 * MINUTE, maxInterval: 20 * SECOND };
/** A task at the server is polled for as long as the job lasts. */
const TASK_RETRY = { maxDuration: 7 * 24 * HOUR };
/** How often in a row a task may refuse answers. Its questions are asked again each time. */
const MAX_REFUSALS = 3;
/**
 * How often a repeatable call is repeated after its outcome was lost at the server. A server that dies every 20 s can lose a call of
 * six seconds five times in a row.
 */
const MAX_LOSSES = 10;
/** The pause before such a repeat, in milliseconds. All of them together outlast an outage of five minutes. */
const pauseAfter = (losses: number) => (losses === 1 ? 0 : Math.min(2 ** (losses - 2), 90) * SECOND);

export async function runCall(server: WrappedServer, ctx: Context, args: CallArgs): Promise<JsonObject> {
  if (args.tool === "resources/subscribe") return awaitUpdate(server, ctx, args);
  const call = new Call(server, ctx, args);
  try {
    return await call.run();
  } finally {
    outside(() => server.forget(ctx.jobName));
  }
}

/** Waits for a change of a resource; `since`: the state that the caller knows. */
function awaitUpdate(
  server: WrappedServer,
  ctx: Context,
  { arguments: { uri, since } }: CallArgs,
): Promise<JsonObject> {
  return ctx.step(
    "update",
    async ({ log, signal }) => {
      const { updates } = await server.connection(ctx.jobName, log);
      return { at: await updates.next(String(uri), since, signal) };
    },
    { retry: CALL_RETRY },
  );
}

class Call {
  readonly #server: WrappedServer;
  readonly #ctx: Context;
  readonly #args: CallArgs;
  /** The answers to questions of the 2025 revisions, by event number. */
  readonly #answers = new Map<number, JsonObject>();
  /** The event numbers of the questions, by question id. */
  readonly #questions = new Map<string | number, number>();
  readonly #requests: CallRequests;
  #awaitedRequest: AwaitedRequest = { base: 0, request: { kind: "call" } };
  /** The suffix of step names, so that this generation of the job does not reuse a step of an earlier one. */
  readonly #attempt: string;

  constructor(server: WrappedServer, ctx: Context, args: CallArgs) {
    this.#server = server;
    this.#ctx = ctx;
    this.#args = args;
    const { jobName, deadline, signal } = ctx;
    this.#requests = new CallRequests(server, {
      jobName,
      deadline,
      signal,
      args,
      answers: this.#answers,
      questions: this.#questions,
    });
    this.#attempt = /~\d+$/.exec(ctx.jobName)?.[0] ?? "";
  }

  /** Reacts to the events of the call one after another, until the call has finished. `n` is the number of the event. */
  async run(): Promise<JsonObject> {
    let n = 0;
    let losses = 0;
    /** The last request that was sent, with the answers to the call's earlier questions. */
    let request: Extract<AwaitedRequest["request"], { kind: "call" }> = { kind: "call" };
    let outcome = await this.#send(n, request);
    for (;;) {
      if (!/^(question|stream|host)$/.test(outcome.kind)) outside(() => this.#releaseAnswer(n));
      switch (outcome.kind) {
        case "result":
          return outcome.result;
        case "error":
          return protocolError(outcome);
        case "stream":
        case "host":
          n += 1;
          this.#awaitedRequest = continuation(this.#awaitedRequest, n, outcome);
          outcome = await this.#next(this.#ctx, n, `call ${n}${this.#attempt}`);
          break;
        case "lost":
          n += 1;
          losses += 1;
          if (losses > MAX_LOSSES) throw new NonRetryableError(outcome.why);
          outcome = await this.#send(n, request, pauseAfter(losses));
          break;
        case "question":
          outcome = await this.#ask(n, outcome);
          n += 1;
          break;
        case "input": {
          const inputs = await this.#askAll(n, outcome.requests);
          const { state } = outcome;
          n += 1;
          request = { kind: "call", inputs, ...(state !== undefined && { state }) };
          outcome = await this.#send(n, request);
          break;
        }
        case "task": {
          const { sessionId } = outcome.session;
          outside(() => this.#server.keepTask(this.#ctx.jobName, sessionId));
          n += 1;
          if (outcome.isLegacy) {
            this.#awaitedRequest = { base: n, request: outcome };
            outcome = await this.#next(this.#ctx, n, `task ${n}${this.#attempt}`);
          } else {
            ({ n, outcome } = await this.#followTask(n, outcome));
          }
          break;
        }
      }
    }
  }

  /**
   * Releases the answer of event `n`, whose outcome is recorded. In a replay, the call in this process may be a later one, and still
   * open.
   */
  #releaseAnswer(n: number): void {
    const call = this.#server.calls.of(this.#ctx.jobName);
    if (call && call.options.base <= n) call.request.release();
  }

  /**
   * Sends a request (a non-repeatable one at most once), and waits for its first event. `wait`: a pause before it in milliseconds,
   * which is part of the step.
   */
  async #send(n: number, request: AwaitedRequest["request"], wait = 0): Promise<StepOutcome> {
    const suffix = (n === 0 ? "" : ` ${n}`) + this.#attempt;
    // Only the first request of the first generation was sent before the job; the job sends the others itself.
    let record = suffix === "" ? this.#args.send_record : undefined;
    // After a crash, the record means that the call may have been sent: only the process that wrote the record knows.
    if (this.#args.once) {
      record ??= await this.#ctx.step(`send${suffix}`, (step) => this.#requests.prepare(step), { retry: CALL_RETRY });
    }
    this.#awaitedRequest = { base: n, request, ...(record && recordOf(record, this.#args)) };
    return this.#next(this.#ctx, n, `call${suffix}`, { wait });
  }

  /** Asks the caller a question; waits for the answer, or for the call's next event if the call continues without it. */
  async #ask(n: number, { id, params }: Extract<CallEvent, { kind: "question" }>): Promise<StepOutcome> {
    const question = questionOf(params);
    this.#questions.set(id, n);
    const { winner, value } = await this.#ctx.race(
      {
        answer: (ctx) => ctx.ask("question", question),
        call: (ctx) => this.#next(ctx, n + 1, "call", { isUntimed: true }),
      },
      { name: `question ${n}${this.#attempt}` },
    );
    if (winner === "call") return value as StepOutcome;
    const answer = value as JsonObject;
    this.#answers.set(n, answer);
    const { request } = this.#awaitedRequest;
    // Passing the answer to the call that waits in this process is a side effect outside the journal.
    const answerHere = () => outside(() => this.#server.calls.of(this.#ctx.jobName)?.answer(n, answer) === true);
    if (request.kind !== "task") answerHere();
    else {
      // A task asks once. If it asked another process, the answer goes to the session in which it asked.
      await this.#ctx.step(
        `answer ${n}${this.#attempt}`,
        async (step) => {
          if (answerHere()) return null;
          const connection = await this.#requests.connect(step);
          await connection.respond(request.session, id, answer).catch((error) => this.#lossOf(error));
          return null;
        },
        { retry: CALL_RETRY },
      );
    }
    return this.#next(this.#ctx, n + 1, `call ${n + 1}${this.#attempt}`);
  }

  /** Asks the caller all questions of a result. */
  async #askAll(n: number, requests: JsonObject): Promise<JsonObject> {
    const questions = Object.entries(requests).map(([key, request]) => {
      const { method, params = {} } = request as { method?: string; params?: JsonObject };
      if (method !== "elicitation/create" || (params.mode ?? "form") !== "form") {
        throw new NonRetryableError(
          `${this.#server.options.name} asks for ${method}${params.mode === undefined ? "" : ` (${params.mode})`}: durable-mcp-edge passes on questions of the form mode only`,
        );
      }
      return [key, questionOf(params)] as const;
    });
    const answers = questions.map(async ([key, question]): Promise<[string, Answer]> => {
      return [key, await this.#ctx.ask(`question ${n} ${key}`.slice(0, 150), question)];
    });
    return Object.fromEntries(await Promise.all(answers));
  }

  /** Polls a task of the 2026 revision, which runs at the server, and answers its questions. */
  async #followTask(
    first: number,
    task: Extract<StepOutcome, { kind: "task" }>,
  ): Promise<{ n: number; outcome: StepOutcome }> {
    const { sessionId } = task.session;
    const { name, timeout = HOUR } = this.#server.options;
    const answeredKeys = new Set<string>();
    let refusals = 0;
    for (let n = first; ; n++) {
      const poll = (step: Step) => {
        const connect = (lost?: Connection) => {
          // Each poll shows that the task needs its program.
          this.#server.keepTask(this.#ctx.jobName, sessionId);
          return this.#requests.connect(step, lost);
        };
        return watchTask(connect, step, task, answeredKeys, name, timeout).catch((error) => this.#lossOf(error));
      };
      try {
        const outcome = await this.#ctx.step(`task ${n}${this.#attempt}`, poll, { retry: TASK_RETRY });
        if (outcome.kind !== "input") return { n, outcome };
        const inputs = await this.#askAll(n, outcome.requests);
        const update = (step: Step): Promise<string | null> =>
          this.#notify(step, "tasks/update", task, { inputResponses: inputs, signal: step.signal }).catch((error) => {
            // The task may have the answers from an earlier attempt. If not, it still asks.
            if (error instanceof RpcError && step.attempt > 1) return error.message;
            throw error;
          });
        const retry = { maxDuration: Math.max(timeout, CALL_RETRY.maxDuration) };
        const refusal = await this.#ctx.step(`answer ${n}${this.#attempt}`, update, { retry });
        refusals = refusal === null ? 0 : refusals + 1;
        if (refusal === null) for (const key of Object.keys(inputs)) answeredKeys.add(key);
        else if (refusals === MAX_REFUSALS) {
          throw new NonRetryableError(`${name} refuses the answers to its questions: ${refusal}`);
        }
      } catch (error) {
        await this.#cancelTask(n, task, error);
      }
    }
  }

  /** Cancels a task whose job ends: an attempt that does so may be paused, or run on a worker that has ended. @throws `reason` */
  async #cancelTask(n: number, task: RemoteTask, reason: unknown): Promise<never> {
    if (reason instanceof JobCancelled || reason instanceof DeadlineExceeded) {
      const cancel = (step: Step) =>
        this.#notify(step, "tasks/cancel", task).catch((error) => {
          // The task may have ended.
          if (error instanceof RpcError) return null;
          throw error;
        });
      // The job ends for its own reason, even if the server cannot be notified.
      await this.#ctx
        .cleanup((ctx) => ctx.step(`cancel ${n}${this.#attempt}`, cancel, { retry: CALL_RETRY }))
        .catch(() => {});
    }
    throw reason;
  }

  /** Sends the server a request about a task. @throws {AnswerLost} if it does not answer in time */
  async #notify(
    step: Step,
    method: string,
    task: RemoteTask,
    params?: Parameters<typeof requestTask>[3],
  ): Promise<null> {
    const answer = await requestTask((lost) => this.#requests.connect(step, lost), method, task, params);
    if (!answer) throw new AnswerLost(`${this.#server.options.name} has not answered ${method} in time`);
    return null;
  }

  /** Turns an unknown outcome into one that repeats the call, if the call may be repeated. @throws any other error */
  #lossOf(error: unknown): StepOutcome {
    if (!(error instanceof OutcomeUnknown)) throw error;
    const why = `${this.#server.options.name}: ${error.message}`;
    if (!this.#args.once) return { kind: "lost", why };
    throw new NonRetryableError(`${why}. Whether the call had its effect is unknown; it is not sent again.`);
  }

  /** Waits for event `n`. */
  #next(ctx: Context, n: number, name: string, { isUntimed = false, wait = 0 } = {}): Promise<StepOutcome> {
    const { timeout = HOUR } = this.#server.options;
    const awaitedRequest = this.#awaitedRequest;
    const work = async (step: Step) => {
      if (wait > 0 && step.attempt === 1) {
        await pause(wait, step.signal);
        step.signal.throwIfAborted();
      }
      const event = this.#requests.event(step, n, awaitedRequest, isUntimed ? undefined : timeout);
      return event.catch((error) => this.#lossOf(error));
    };
    return ctx.step(name, work, { retry: awaitedRequest.request.kind === "call" ? CALL_RETRY : TASK_RETRY });
  }
}
