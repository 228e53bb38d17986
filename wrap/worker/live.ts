/** Calls under way in this process: what has become of them is told one event after the other. */
import type { Step } from "../../core/definitions/context.ts";
import type { Connection } from "./connection.ts";
import type { Asked, Exchange, Session, Under } from "./request-state.ts";

type Json = Record<string, unknown>;

/** What becomes of a call: it ends, or something has to happen before it goes on. */
export type CallEvent =
  | { kind: "result"; result: Json }
  /** The server's answer is an error of the protocol. */
  | { kind: "error"; code: number; message: string }
  /** A question of the 2025 revisions: the server waits with the request open. */
  | { kind: "question"; id: string | number; params: Json }
  /** The program's keeper has it: another process can send it again, and it is not made again. */
  | { kind: "kept"; keeper: string; request: string }
  /** The stream of the answer can be picked up by another process. */
  | { kind: "stream"; session: string; request: string; event: string; revision: string };

/** How long a call runs before it is written down how its stream could be picked up, in milliseconds. */
const RESUMABLE_AFTER = 3_000;
/** How long what has ended is kept for a job that comes back for it, in milliseconds. */
const KEPT = 5 * 60_000;

export type Progress = Step["progress"];

/** What a {@link LiveCall} is told of its request. */
export interface CallAbout {
  base: number;
  /** The request's id. */
  request: string;
  answers: ReadonlyMap<number, Json>;
  /** The session that it belongs to. */
  place: Session;
  /** Whether it picks up a stream: how that is done is known. */
  isResumed: boolean;
  /** Whether another process may have sent it: then it may go nowhere but to the keeper that knows it. */
  isAgain: boolean;
  /** The keeper that has it, where nobody knows that yet. */
  keeper: string | undefined;
  /** What it has asked before, by the ids of the questions: the numbers of those events. */
  questions: ReadonlyMap<string | number, number>;
}

/** A request under way. Its events are numbered from `base`, throughout the job. */
export class LiveCall {
  readonly base: number;
  /** The session that it was made in. */
  readonly place: Session;
  /** Whether it picks up a stream. */
  readonly isResumed: boolean;
  /** Whether another process may have sent it. */
  readonly isAgain: boolean;
  readonly #events: PromiseWithResolvers<CallEvent>[] = [];
  readonly #asked: (Asked | undefined)[] = [];
  readonly #answers: ReadonlyMap<number, Json>;
  #next: number;
  #under: Under | undefined;
  #ids: { last?: string; before?: string } = {};
  #isResumable = false;
  #isDone = false;
  #timer: NodeJS.Timeout | undefined;
  /** Told how far it is; whoever waits for it sets it. */
  onProgress: Progress | undefined;
  /** Resolves when nothing more will happen. */
  readonly ended: Promise<void>;
  /** Why it was lost, if it was, once it has ended. */
  failed: Error | undefined;

  /**
   * `send` makes the request. `answers` holds what was answered to its questions in an earlier process, by the numbers of
   * the events.
   */
  constructor(
    connection: Connection,
    { base, request, answers, place, isResumed, isAgain, keeper, questions }: CallAbout,
    send: (exchange: Exchange) => Under,
  ) {
    this.base = base;
    this.place = place;
    this.isResumed = isResumed;
    this.isAgain = isAgain;
    this.#next = base;
    this.#answers = answers;
    const { sessionId: session, protocolVersion: revision = connection.revision } = place;
    const resumable = !isResumed && session !== undefined && connection.era === "legacy" ? session : undefined;
    const tell = (event: string | undefined) => {
      if (this.#isResumable || (keeper ?? event) === undefined) return;
      if (keeper !== undefined) this.#emit({ kind: "kept", keeper, request });
      else if (resumable === undefined || event === undefined) return;
      else this.#emit({ kind: "stream", session: resumable, request, event, revision });
      this.#isResumable = true;
    };
    this.#under = send({
      onProgress: ({ progress, total, message }) => this.onProgress?.(progress, total, message),
      onEventId: (id) => {
        this.#ids = { last: id, ...(this.#ids.last !== undefined && { before: this.#ids.last }) };
      },
      onAsked: (asked) => {
        const before = questions.get(asked.id);
        if (before === undefined) tell(this.#ids.before);
        const n = before ?? this.#next;
        this.#asked[n] = asked;
        if (before === undefined) this.#emit({ kind: "question", id: asked.id, params: asked.params });
        const known = this.#answers.get(n);
        if (known) this.answer(n, known);
      },
    });
    this.#timer = setTimeout(() => tell(this.#ids.last), RESUMABLE_AFTER);
    this.ended = this.#under.result
      .then(
        (result) => this.#end({ kind: "result", result }),
        (error) => this.#fail(error),
      )
      .finally(() => clearTimeout(this.#timer));
  }

  /** Whether it can tell what event `n` is: it has not ended before. */
  tells(n: number): boolean {
    return n >= this.base && (!this.#isDone || n < this.#next);
  }

  /** The event with a number. Rejects when the call is lost before. */
  event(n: number): Promise<CallEvent> {
    return this.#at(n).promise;
  }

  /** Answers the question that was event `n`, unless it is answered; false where it was not asked here. */
  answer(n: number, result: Json): boolean {
    const asked = this.#asked[n];
    if (!asked) return this.#asked.length > n;
    this.#asked[n] = undefined;
    asked.answer(result);
    return true;
  }

  cancel(reason: string): void {
    this.#under?.cancel(reason);
  }

  /** Nobody here waits for it any more; the server goes on with it. */
  leave(): void {
    this.#under?.leave();
  }

  /** What it came to is written down. */
  recorded(): void {
    this.#under?.recorded();
  }

  /** Whether nothing more will happen. */
  get isOver(): boolean {
    return this.#isDone || this.failed !== undefined;
  }

  #at(n: number): PromiseWithResolvers<CallEvent> {
    const place = n - this.base;
    let event = this.#events[place];
    if (!event) {
      event = Promise.withResolvers<CallEvent>();
      event.promise.catch(() => {});
      this.#events[place] = event;
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

  #fail(error: Error & { code?: unknown }): void {
    if (error.name === "RpcError") {
      this.#end({ kind: "error", code: Number(error.code), message: error.message });
      return;
    }
    this.failed = error;
    for (let n = this.#next; n < this.base + this.#events.length; n++) this.#at(n).reject(error);
    this.#at(this.#next).reject(error);
  }
}

/** The calls of this process, by the jobs that they are of. */
export class LiveCalls {
  readonly #calls = new Map<string, LiveCall>();
  readonly #beginning = new Map<string, Promise<LiveCall>>();
  /**
   * Jobs that may send, once, what they have written down that they would; with what gives back the place that they have
   * among the calls that are made at once, where they have one.
   */
  readonly #permits = new Map<string, (() => void) | undefined>();

  /** The call of a job that can tell what event `n` is, if it is under way here. */
  find(job: string, n: number): LiveCall | undefined {
    const call = this.#calls.get(job);
    return call?.tells(n) ? call : undefined;
  }

  /** The last call of a job that was made here. */
  of(job: string): LiveCall | undefined {
    return this.#calls.get(job);
  }

  /** Makes a job's request, unless that is under way: two steps of one job may wait for it. */
  begin(job: string, base: number, make: () => Promise<LiveCall>): Promise<LiveCall> {
    const key = `${base} ${job}`;
    const known = this.#beginning.get(key);
    if (known) return known;
    const begun = make().finally(() => this.#beginning.delete(key));
    this.#beginning.set(key, begun);
    return begun;
  }

  put(job: string, call: LiveCall): void {
    this.#calls.set(job, call);
    void call.ended.then(() => {
      setTimeout(() => this.#drop(job, call), KEPT).unref();
    });
  }

  /** What a job has been told of is not kept for it. */
  forget(job: string): void {
    this.#calls.delete(job);
    this.#permits.get(job)?.();
    this.#permits.delete(job);
  }

  /** The place is given back when the signal is aborted before it is used. */
  permit(job: string, giveBack?: () => void, signal?: AbortSignal): void {
    this.#permits.get(job)?.();
    this.#permits.set(job, giveBack);
    const loosen = () => {
      if (this.#permits.get(job) === giveBack) this.permit(job);
    };
    signal?.addEventListener("abort", loosen, { once: true });
  }

  /** Whether what a job has written down that it would send is not sent yet. */
  mayBegin(job: string): boolean {
    return this.#permits.has(job);
  }

  placeOf(job: string): (() => void) | undefined {
    return this.#permits.get(job);
  }

  takePermit(job: string): void {
    this.#permits.delete(job);
  }

  #drop(job: string, call: LiveCall): void {
    if (this.#calls.get(job) === call) this.#calls.delete(job);
  }
}
