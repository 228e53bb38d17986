/** Calls in flight in this process, and the sequence of events of each. */
import { LRUCache } from "lru-cache";
import type { Step } from "../../../core/author/context.ts";
import { LEVELS, type LogMessage } from "../../behind/logs.ts";
import { RpcError } from "../connection/errors.ts";
import type { JsonObject, OpenRequest, RequestHooks, ServerQuestion, Session } from "../connection/open-request.ts";
import { MAX_MESSAGE, told } from "./outcome.ts";
import { isTooDeep } from "./readable.ts";
import type { Seat, Slot } from "./slots.ts";

/** An event of a call: its end, or something that the job must react to. Steps store events, so their fields must keep their names. */
export type CallEvent =
  | { kind: "result"; result: JsonObject }
  /** The server's answer is a protocol error. */
  | { kind: "error"; code: number; message: string; data?: unknown }
  /** A question of the 2025 revisions: the server waits, and the request stays open. */
  | { kind: "question"; id: string | number; params: JsonObject }
  /** The program host `keeper` has the request: another process can send it again without repeating the call. */
  | { kind: "kept"; keeper: string; request: string }
  /** Another process can resume the stream of the answer. */
  | { kind: "stream"; session: string; request: string; event: string; revision: string };

/** How long a call runs before its job records where its stream can be resumed, in milliseconds. */
const RESUMABLE_AFTER = 3_000;
/** How long a finished call is kept for its job, in milliseconds. */
const KEPT = 5 * 60_000;

interface CallOptions {
  /** The number of the first event; numbers are unique within a job. */
  base: number;
  /** The answers to questions that the call asked in an earlier process, by event number. */
  answers: ReadonlyMap<number, JsonObject>;
  session: Session;
  isResumed: boolean;
  /** Whether another process may have sent the request: it may be sent again only to the program host that has it. */
  isRepeated: boolean;
  /** Where another process can continue the call, after the event of the stream with this id; undefined if nowhere. */
  position(event: string | undefined): CallEvent | undefined;
  /** The event numbers of the questions that the call asked before, by question id. */
  questions: ReadonlyMap<string | number, number>;
  /** The lowest level of the log messages that are kept for the caller; undefined for none. */
  log: string | undefined;
}

/** The limits on a call's log messages to its caller: their number, and their total size in characters of JSON. */
const MAX_LOGS = 1_000;
const MAX_LOG_SIZE = 100_000;

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
  readonly ended: Promise<void>;
  /** Why the call was lost, if it was. */
  failed: Error | undefined;

  /** `send` makes the request. */
  constructor(options: CallOptions, send: (hooks: RequestHooks) => OpenRequest) {
    const { base, questions, answers } = options;
    this.options = options;
    this.#next = base;
    const recordPosition = (event: string | undefined) => {
      const position = this.#isResumable ? undefined : options.position(event);
      if (!position) return;
      this.#isResumable = true;
      this.#emit(position);
    };
    this.request = send({
      onProgress: ({ progress, total, message }) => {
        // Readers cannot read a malformed entry of the job's progress feed, and then miss its questions.
        const words = typeof message === "string" ? message.slice(0, MAX_MESSAGE) : undefined;
        this.progress = [numberOf(progress) ?? 0, numberOf(total), words];
        this.onProgress?.(...this.progress);
      },
      ...(options.log !== undefined && { onLog: (message) => this.#keepLog(message, options.log as string) }),
      onEventId: (id) => {
        this.#previousEventId = this.#eventId;
        this.#eventId = id;
      },
      isAsking: () => this.#questions.some(Boolean),
      onAsked: (question) => {
        const known = questions.get(question.id);
        // The recorded position is before the question, so that a process that resumes there gets the question again.
        if (known === undefined) recordPosition(this.#previousEventId);
        const n = known ?? this.#next;
        this.#questions[n] = question;
        this.seat?.leave();
        if (known === undefined) this.#emit({ kind: "question", id: question.id, params: question.params });
        const answer = answers.get(n);
        if (answer) this.answer(n, answer);
      },
    });
    const timer = setTimeout(() => recordPosition(this.#eventId), RESUMABLE_AFTER);
    this.ended = this.request.result
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

  #keepLog({ level, logger, data }: JsonObject, from: string): void {
    if (LEVELS.indexOf(String(level)) < LEVELS.indexOf(from) || isTooDeep(data)) return;
    const message = { level: String(level), ...(typeof logger === "string" && { logger }), data: data ?? null };
    this.#logSize += JSON.stringify(message).length;
    if (this.logs.length < MAX_LOGS && this.#logSize <= MAX_LOG_SIZE) this.logs.push(message);
  }

  get isOver(): boolean {
    return this.#isDone || this.failed !== undefined;
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
    if (error instanceof RpcError) {
      this.#end({ kind: "error", ...told(error) });
      return;
    }
    this.failed = error;
    this.#at(this.#next);
    for (const event of this.#events) event?.reject(error);
  }
}

const numberOf = (value: unknown): number | undefined => (Number.isFinite(value) ? (value as number) : undefined);

interface Permit {
  at: string | undefined;
  slot: Slot | undefined;
}

/** The calls of this process by job. */
export class CallsInFlight {
  readonly #calls = new LRUCache<string, CallInFlight>({ ttl: KEPT, ttlAutopurge: true });
  readonly #beginning = new Map<string, Promise<CallInFlight>>();
  /**
   * The jobs that have recorded that they are about to send their call and have not sent it yet, each with the time in that record
   * and the slot that it holds, if any.
   */
  readonly #permits = new Map<string, Permit>();

  /** The job's last call in this process. */
  of(job: string): CallInFlight | undefined {
    return this.#calls.get(job);
  }

  /** Makes a job's call once, even if two steps of the job request it at the same time. */
  begin(job: string, base: number, make: () => Promise<CallInFlight>): Promise<CallInFlight> {
    const key = `${base} ${job}`;
    const begun = this.#beginning.get(key) ?? make().finally(() => this.#beginning.delete(key));
    this.#beginning.set(key, begun);
    return begun;
  }

  put(job: string, call: CallInFlight): void {
    this.#calls.set(job, call, { ttl: 0 });
    void call.ended.then(() => {
      if (this.#calls.get(job) === call) this.#calls.set(job, call);
    });
  }

  forget(job: string): void {
    this.#calls.delete(job);
    this.#dropPermit(job);
  }

  #dropPermit(job: string): void {
    this.#permits.get(job)?.slot?.free();
    this.#permits.delete(job);
  }

  /**
   * Permits a job to send its call once. `at`: the time in the job's record of this call, if it writes one. The slot is freed when
   * `signal` is aborted before the call is sent.
   */
  permit(job: string, at: string | undefined, slot?: Slot, signal?: AbortSignal): void {
    this.#dropPermit(job);
    this.#permits.set(job, { at, slot });
    const loseSlot = () => {
      if (slot && this.#permits.get(job)?.slot === slot) this.permit(job, at);
    };
    signal?.addEventListener("abort", loseSlot, { once: true });
  }

  /**
   * Takes the permit to send the call whose record has this time. A permit for another record is dropped: this worker lost the job
   * before its own record was written, and the worker that wrote the present record may have sent the call.
   */
  takePermit(job: string, at: string | undefined): Permit | undefined {
    const permit = this.#permits.get(job);
    if (permit?.at === at) this.#permits.delete(job);
    else this.#dropPermit(job);
    return permit?.at === at ? permit : undefined;
  }
}
