/** What a job of a wrapped server does: it makes one call, and goes on with it where it was, whatever crashes. */
import {
  type Answer,
  type Context,
  HOUR,
  MINUTE,
  NonRetryableError,
  SECOND,
  type Step,
} from "../../core/definitions/context.ts";
import type { CallArgs } from "../call-job.ts";
import type { Connection } from "./connection.ts";
import { Gone } from "./errors.ts";
import type { CallEvent } from "./live.ts";
import { explain, protocolError } from "./outcome.ts";
import { requestId } from "./request-state.ts";
import { Requests } from "./requests.ts";
import { type JsonObject, type Leg, questionOf, resumable, type Segment, type Sending } from "./segment.ts";
import { watchTask } from "./tasks.ts";
import type { WrappedServer } from "./wrapped-server.ts";

/** How long a server that cannot be reached is tried, in milliseconds. */
const PATIENCE = { for: 5 * MINUTE, longest: 20 * SECOND };
/** A task at the server is asked for as long as the job lasts. */
const LASTING = { for: 7 * 24 * HOUR };
/** How often a call that may be repeated is made anew when what became of it is lost at the server. */
const MAX_LOSSES = 3;

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
  /** What was asked, by the ids of the questions: the numbers of the events. */
  readonly #questions = new Map<string | number, number>();
  readonly #requests: Requests;
  #segment: Segment = { base: 0, request: { kind: "call" } };

  /** Put behind the names of calls: what an earlier attempt at the job has done is not this one's. */
  readonly #attempt: string;

  constructor(server: WrappedServer, ctx: Context, args: CallArgs) {
    this.#server = server;
    this.#ctx = ctx;
    this.#args = args;
    const { jobName, deadline, signal } = ctx;
    const told = { answers: this.#answers, questions: this.#questions };
    this.#requests = new Requests(server, { jobName, deadline, signal, args, ...told });
    this.#attempt = /~\d+$/.exec(ctx.jobName)?.[0] ?? "";
  }

  async run(): Promise<JsonObject> {
    let n = 0;
    let losses = 0;
    let leg = await this.#first(n, { kind: "call" });
    for (;;) {
      if (!/^(question|stream|kept)$/.test(leg.kind)) this.#server.calls.of(this.#ctx.jobName)?.recorded();
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
        case "kept":
          n += 1;
          this.#segment = { ...this.#segment, base: n, kept: { keeper: leg.keeper, request: leg.request } };
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
            leg = await this.#next(this.#ctx, n, `task ${n}${this.#attempt}`);
          } else {
            const ended = await this.#task(n, leg);
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
      const send = (step: Step) => this.#mayBeSent(step).catch(explain);
      // Before there were keepers, the time was all that was written.
      const sent: Sending | string = await this.#ctx.step(`send${number}`, send, { retry: PATIENCE });
      const { at, kept } = typeof sent === "string" ? { at: sent } : sent;
      this.#segment = { base: n, request, sentAt: at, ...(kept && { kept }) };
    }
    return this.#next(this.#ctx, n, `call${number}`);
  }

  /** Waits until the call can be made at once. */
  async #mayBeSent({ log, signal }: Step): Promise<Sending> {
    const { jobName } = this.#ctx;
    const connected = () => this.#server.connection(jobName, log);
    await connected();
    const giveBack = await this.#server.place(signal);
    try {
      // It may have ended meanwhile.
      const { keeper } = await connected();
      // Whoever runs the job now permits it himself.
      signal.throwIfAborted();
      this.#server.calls.permit(jobName, giveBack, signal);
      const kept = keeper === undefined ? {} : { kept: { keeper, request: requestId() } };
      return { at: new Date().toISOString(), ...kept };
    } catch (error) {
      giveBack();
      throw error;
    }
  }

  /** A question: waits for its answer, or for the call to end without. */
  async #asked(n: number, { id, params }: Extract<CallEvent, { kind: "question" }>): Promise<Leg> {
    const question = questionOf(params);
    this.#questions.set(id, n);
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
    const here = () => this.#server.calls.of(this.#ctx.jobName)?.answer(n, value as JsonObject) === true;
    if (request.kind !== "task") here();
    else {
      // A task asks once. What was asked in another process is answered from here, in the session that it was asked in.
      await this.#ctx.step(
        `answer ${n}${this.#attempt}`,
        async ({ log }) => {
          if (here()) return null;
          const connection = await this.#server.connection(this.#ctx.jobName, log);
          await connection.respond(request.place, id, value as JsonObject).catch((error) => this.#gone(error));
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
  async #task(first: number, task: Extract<Leg, { kind: "task" }>): Promise<{ n: number; leg: Leg }> {
    const { taskId, place } = task;
    const answered = new Set<string>();
    for (let n = first; ; n++) {
      const look = (step: Step) =>
        watchTask(() => this.#connect(step), step, task, answered).catch((error) => this.#gone(error));
      const leg = await this.#ctx.step(`task ${n}${this.#attempt}`, look, { retry: LASTING });
      if (leg.kind !== "input") return { n, leg };
      const inputs = await this.#collect(n, leg.requests);
      for (const key of Object.keys(inputs)) answered.add(key);
      const tell = async (step: Step) => {
        const connection = await this.#connect(step);
        await connection.request("tasks/update", { taskId, inputResponses: inputs }, {}, requestId(), place).result;
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
      this.#requests.event(step, n, segment, untimed ? undefined : timeout).catch((error) => this.#gone(error));
    return ctx.step(name, work, { retry: segment.request.kind === "call" ? PATIENCE : LASTING });
  }
}
