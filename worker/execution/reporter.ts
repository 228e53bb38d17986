import { LeaseLost } from "../../core/engine/execution.ts";
import type { ExecutionState } from "../../core/engine/state.ts";
import { doing, type FeedEntry } from "../../core/jobs/feed/progress-feed.ts";
import type { ProgressFeeds } from "../../core/jobs/feed/progress-feeds.ts";
import { type LineLog, reasonOf } from "./instruments.ts";

/** What is over sooner than this is not worth an entry, in milliseconds. */
const WORTH_TELLING = 1_000;

/** A sleep shorter than this is not either. */
const WORTH_TELLING_SLEEP = 10_000;

/**
 * The least time between two entries that nobody has to act on: at first, and as a share of the job's age. Entries are
 * kept for ever; so there are some two hundred of them at most, however long the job runs.
 */
const FIRST_GAP = 100;
const GAP = 0.1;

/** So many entries are written each time that a job goes to sleep; from then on one that would soon be out of date is not. */
const FREELY = 32;

/** The newest entry of a journal: its number, 0 when there is none, and what it says. */
export interface Newest {
  n: number;
  text: string;
  /** When it was written, in milliseconds since the epoch. */
  at: number;
}

/** Writes the journal of one job while it runs here: no more often than is of use to whoever looks. */
export class Reporter {
  readonly #journals: ProgressFeeds;
  readonly #promise: { id: string; createdAt: number; timeoutAt: number };
  readonly #log: LineLog;
  /** The number of the newest entry; unknown at first. */
  #n: number | undefined;
  #written = "";
  #lastWrite = 0;
  #state: ExecutionState | undefined;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #isClosed = false;

  /** `newest`: the newest entry that there is, where that is known. */
  constructor(
    journals: ProgressFeeds,
    promise: { id: string; createdAt: number; timeoutAt: number },
    newest: Newest | undefined,
    log: LineLog,
  ) {
    this.#journals = journals;
    this.#promise = promise;
    this.#n = newest?.n;
    this.#written = newest?.text ?? "";
    this.#lastWrite = newest?.at ?? 0;
    this.#log = log;
  }

  /** The newest entry, where it is known. */
  get newest(): Newest | undefined {
    return this.#n === undefined ? undefined : { n: this.#n, text: this.#written, at: this.#lastWrite };
  }

  /** The job does something else, or something has become of what it does. */
  tell(state: ExecutionState): void {
    this.#state = state;
    this.#schedule();
  }

  /**
   * The job is to sleep: what somebody has to know by then is written. `patience` is how long that of questions is tried,
   * in milliseconds.
   *
   * @throws {LeaseLost} when there are questions that could not be written: nobody would ever answer them
   */
  async beforeSleep({ quiet, patience }: { quiet: boolean; patience: number }): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const state = this.#state;
    if (!state) return;
    const sleep = (state.sleepingUntil ?? 0) - Date.now();
    const sleeps = sleep >= WORTH_TELLING_SLEEP && !quiet;
    if (!hasNews(state) && !sleeps && !(state.awaiting > 0 && !quiet) && !this.#n) return;
    await this.#writing;
    const asks = state.questions.length > 0;
    // A loop of many sleeps or waits must not leave an entry each time.
    const isBrief = (this.#n ?? 0) > FREELY && Math.max(Date.now() - this.#lastWrite, sleep) < this.#gap;
    if (isBrief && questionsIn(this.#written) === JSON.stringify(entryOf(state).questions)) return;
    await this.#write(entryOf(state), asks ? patience : undefined);
    if (asks && this.#written === "") throw new LeaseLost("its questions could not be told");
  }

  /** The code that is here does not fit what the job has done. */
  blocked(reason: string): Promise<void> {
    return this.#write({ questions: {}, blocked: reason });
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  get #gap(): number {
    return Math.max(FIRST_GAP, (Date.now() - this.#promise.createdAt) * GAP);
  }

  #schedule(): void {
    if (this.#timer || this.#isClosed) return;
    const gap = this.#gap;
    const state = this.#state as ExecutionState;
    const due = hasNews(state) ? this.#lastWrite + gap : Math.max(this.#lastWrite + gap, since(state) + WORTH_TELLING);
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        if (this.#state && worthTelling(this.#state)) void this.#write(entryOf(this.#state));
      },
      Math.min(Math.max(due - Date.now(), 0), 2 ** 31 - 1),
    );
  }

  #write(entry: FeedEntry, patience?: number): Promise<void> {
    const text = JSON.stringify(entry);
    if (text === this.#written || this.#isClosed) return this.#writing;
    this.#written = text;
    this.#lastWrite = Date.now();
    this.#writing = this.#writing.then(async () => {
      try {
        const { id, timeoutAt } = this.#promise;
        this.#n ??= (await this.#journals.newest(id)).n;
        // One that is there is that of a worker which had the job before, and was not done when its lease lapsed.
        while (!(await this.#journals.write(id, this.#n + 1, entry, { timeoutAt, patience }))) this.#n += 1;
        this.#n += 1;
        if (!this.#isClosed) this.#log.info(told(entry), "job goes on");
      } catch (error) {
        // It is for those who look; the job goes on without, unless it asks.
        this.#written = "";
        this.#n = undefined;
        this.#log.debug({ reason: reasonOf(error) }, "journal not written");
      }
    });
    return this.#writing;
  }
}

/** The questions in the text of an entry, as a text. */
function questionsIn(text: string): string {
  return JSON.stringify(text === "" ? {} : (JSON.parse(text) as FeedEntry).questions);
}

/** Whether there is something that whoever looks should know at once. */
function hasNews({ questions, progress, steps }: ExecutionState): boolean {
  return questions.length > 0 || progress !== undefined || steps.some(({ error }) => error !== undefined);
}

function since({ steps }: ExecutionState): number {
  return steps.length > 0 ? Math.min(...steps.map((step) => step.since)) : Number.POSITIVE_INFINITY;
}

function worthTelling(state: ExecutionState): boolean {
  return hasNews(state) || since(state) + WORTH_TELLING <= Date.now();
}

/** An entry as the log has it: what the job does in words too, unless that is only a step, whose failures have lines of their own. */
function told({ questions, step, ...entry }: FeedEntry): object {
  const isStep = step && (step.error !== undefined || (entry.message === undefined && !entry.progress));
  const text = isStep ? undefined : doing({ questions, ...(step && { step }), ...entry }, Date.now());
  const asks = Object.values(questions).map(({ question }) => question.message);
  return { doing: text, ...entry, ...(step && { step }), ...(asks.length > 0 && { asks }) };
}

function entryOf({ steps, sleepingUntil, awaiting, questions, progress }: ExecutionState): FeedEntry {
  // What fails is of more interest than what has only begun.
  const step = steps.find(({ error }) => error !== undefined) ?? steps[0];
  const { done, total, message } = progress ?? {};
  return {
    questions: Object.fromEntries(questions.map(({ key, promiseId, question }) => [key, { promiseId, question }])),
    ...(message !== undefined && { message }),
    ...(done !== undefined && { progress: { done, ...(total !== undefined && { total }) } }),
    ...(step && {
      step: {
        name: step.name,
        attempt: step.attempt,
        ...(step.error !== undefined && { error: step.error }),
        ...(step.next !== undefined && { next: step.next }),
      },
    }),
    ...(steps.length > 1 && { more: steps.length - 1 }),
    ...(sleepingUntil !== undefined && { sleeping_until: sleepingUntil }),
    ...(awaiting > 0 && { awaiting }),
  };
}
