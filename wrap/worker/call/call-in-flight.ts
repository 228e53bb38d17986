/** A call in flight in this process, and the sequence of its events. */
import type { Step } from "../../../core/author/index.ts";
import { unheldNumberIn, unheldReason } from "../../../core/resonate/index.ts";
import { LOG_LEVELS, type LogMessage } from "../../upstream/logs.ts";
import { AnswerTooDeep, RpcError } from "../host/errors.ts";
import type { JsonObject, OpenRequest, RequestHooks, ServerQuestion, Session } from "../host/open-request.ts";
import { limitedError, MAX_MESSAGE_CHARACTERS } from "./outcome.ts";
import type { Seat } from "./slots.ts";

/** An event of a call: its end, or something that the job must react to. Steps store events, so their fields must keep their names. */
export type CallEvent =
  | { kind: "result"; result: JsonObject }
  /** The server's answer is a protocol error. */
  | { kind: "error"; code: number; message: string; data?: unknown }
  /** A question of the 2025 revisions: the server waits, and the request stays open. */
  | { kind: "question"; id: string | number; params: JsonObject }
  /** The program host has the request: another process can send it again without repeating the call. */
  | { kind: "host"; host: string; request: string }
  /** Another process can resume the stream of the answer. */
  | { kind: "stream"; session: string; request: string; event: string; revision: string };

/** How long a call runs before its job records where its stream can be resumed, in milliseconds. */
const POSITION_DELAY_MS = 3_000;
/** The limits on a call's log messages to its caller: their number, and their total size in characters of JSON. */
const MAX_LOG_MESSAGES = 1_000;
const MAX_LOG_CHARACTERS = 100_000;

interface CallOptions {
  /** Whether a tool is called, whose errors a model reads in its result. */
  isTool: boolean;
  /** The number of the first event; numbers are unique within a job. */
  base: number;
  /** The answers to questions that the call asked in an earlier process, by event number. */
  answers: ReadonlyMap<number, JsonObject>;
  session: Session;
  isResumed: boolean;
  /** Whether another process may have sent the request: it may be sent again only to the program host that has it. */
  isRepeated: boolean;
  /** Where another process can continue the call, after the event of the stream with this id; undefined if nowhere. */
  position(eventId: string | undefined): CallEvent | undefined;
  /** The event numbers of the questions that the call asked before, by question id. */
  questions: ReadonlyMap<string | number, number>;
  /** The lowest level of the log messages that are stored for the caller; undefined for none. */
  log: string | undefined;
}

export class CallInFlight {
  readonly options: CallOptions;
  readonly #events: PromiseWithResolvers<CallEvent>[] = [];
  readonly #questions: (ServerQuestion | undefined)[] = [];
  readonly request: OpenRequest;
  /** The server's log messages for the caller. */
  readonly logs: LogMessage[] = [];
  #logSize = 0;
  #next: number;
  /** The ids of the last two events of the answer's stream. */
  #eventId: string | undefined;
  #previousEventId: string | undefined;
  #isResumable = false;
  #isDone = false;
  /** The call's slot, which it leaves while it waits for an answer; undefined if it keeps the slot. */
  seat: Seat | undefined;
  /** Gets the server's progress notifications; set exactly while the job waits for the call. */
  onProgress: Step["progress"] | undefined;
  /** The last progress notification. */
  progress: Parameters<Step["progress"]> | undefined;
  /** Resolves when no further event will come. */
  readonly completion: Promise<void>;
  /** Why the call was lost, if it was. */
  failure: Error | undefined;

  /** `send` sends the request. */
  constructor(options: CallOptions, send: (hooks: RequestHooks) => OpenRequest) {
    this.options = options;
    this.#next = options.base;
    const level = options.log;
    this.request = send({
      onProgress: (progress) => this.#reportProgress(progress),
      ...(level !== undefined && { onLog: (message) => this.#addLog(message, level) }),
      onEventId: (id) => {
        this.#previousEventId = this.#eventId;
        this.#eventId = id;
      },
      isAsking: () => this.#questions.some(Boolean),
      onQuestion: (question) => this.#onQuestion(question),
    });
    const timer = setTimeout(() => this.#emitPosition(this.#eventId), POSITION_DELAY_MS);
    this.completion = this.request.result
      .then(
        (result) => this.#end({ kind: "result", result }),
        (error) => this.#fail(error),
      )
      .finally(() => clearTimeout(timer));
  }

  /** Whether event `n` has happened here, or still can happen. */
  knows(n: number): boolean {
    return n >= this.options.base && (!this.#isDone || n < this.#next);
  }

  /** Resolves with event `n`; rejects if the call is lost before that. */
  event(n: number): Promise<CallEvent> {
    return this.#at(n).promise;
  }

  /** Answers the question of event `n` once the call has a slot, unless it is answered already; false if it was not asked here. */
  answer(n: number, result: JsonObject): boolean {
    const question = this.#questions[n];
    if (!question) return this.#questions.length > n;
    const answer = () => {
      if (this.#questions[n] !== question) return;
      this.#questions[n] = undefined;
      question.answer(result);
    };
    if (this.seat) this.seat.return().then(answer, () => {});
    else answer();
    return true;
  }

  #reportProgress({ progress, total, message }: JsonObject): void {
    // Readers cannot read a malformed entry of the job's progress feed, and then miss its questions.
    const text = typeof message === "string" ? message.slice(0, MAX_MESSAGE_CHARACTERS) : undefined;
    this.progress = [numberOf(progress) ?? 0, numberOf(total), text];
    this.onProgress?.(...this.progress);
  }

  #onQuestion(question: ServerQuestion): void {
    const { answers, questions } = this.options;
    const repeatedEvent = questions.get(question.id);
    const isNew = repeatedEvent === undefined;
    // The recorded position is before the question, so that a process that resumes there gets the question again.
    if (isNew) this.#emitPosition(this.#previousEventId);
    const n = repeatedEvent ?? this.#next;
    this.#questions[n] = question;
    this.seat?.leave();
    if (isNew) this.#emit({ kind: "question", id: question.id, params: question.params });
    const answer = answers.get(n);
    if (answer) this.answer(n, answer);
  }

  /** Emits, once, where another process can continue the call after this event of the stream. */
  #emitPosition(eventId: string | undefined): void {
    const position = this.#isResumable ? undefined : this.options.position(eventId);
    if (!position) return;
    this.#isResumable = true;
    this.#emit(position);
  }

  #addLog({ level, logger, data }: JsonObject, lowestLevel: string): void {
    if (LOG_LEVELS.indexOf(String(level)) < LOG_LEVELS.indexOf(lowestLevel)) return;
    const unheld = unheldNumberIn(data, true);
    const message = {
      level: String(level),
      ...(typeof logger === "string" && { logger }),
      data: unheld ? `The data is left out: it has ${unheldReason(unheld)}.` : (data ?? null),
    };
    this.#logSize += JSON.stringify(message).length;
    if (this.logs.length < MAX_LOG_MESSAGES && this.#logSize <= MAX_LOG_CHARACTERS) this.logs.push(message);
  }

  get isOver(): boolean {
    return this.#isDone || this.failure !== undefined;
  }

  #at(n: number): PromiseWithResolvers<CallEvent> {
    const index = n - this.options.base;
    let event = this.#events[index];
    if (!event) {
      event = Promise.withResolvers<CallEvent>();
      event.promise.catch(() => {});
      this.#events[index] = event;
    }
    return event;
  }

  #emit(event: CallEvent): void {
    this.#at(this.#next).resolve(event);
    this.#next += 1;
  }

  #end(event: CallEvent): void {
    this.#isDone = true;
    this.#emit(event);
  }

  #fail(error: Error): void {
    if (error instanceof AnswerTooDeep && this.options.isTool) {
      this.#end({ kind: "result", result: { isError: true, content: [{ type: "text", text: error.message }] } });
      return;
    }
    if (error instanceof RpcError) {
      this.#end({ kind: "error", ...limitedError(error) });
      return;
    }
    this.failure = error;
    this.#at(this.#next);
    for (const event of this.#events) event?.reject(error);
  }
}

const numberOf = (value: unknown): number | undefined => (Number.isFinite(value) ? (value as number) : undefined);
