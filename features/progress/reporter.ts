import { LeaseLost } from "../../core/engine/runtime.ts";
import type { ExecutionState } from "../../core/engine/state.ts";
import { doing, type FeedEntry } from "../../core/jobs/feed/progress-feed.ts";
import type { ProgressFeeds } from "../../core/jobs/feed/progress-feeds.ts";
import type { WaitState } from "../../core/jobs/worker-report.ts";
import { type LineLog, reasonOf } from "../../worker/execution/instruments.ts";

/** Steps and sleeps that are shorter than this get no entry, in milliseconds. */
const SHORTEST_STEP = 1_000;
const SHORTEST_SLEEP = 10_000;

/**
 * The shortest time between two entries without questions: at first in milliseconds, later as a share of the job's age. Entries
 * are never removed; this limits them to about two hundred for any duration of a job.
 */
const FIRST_GAP = 100;
const GAP = 0.1;

/** The number of entries after which short sleeps get none. */
const MANY = 32;

/** The newest entry of a progress feed: its number, or 0 if there is none, and its text. */
export interface LastWritten {
  n: number;
  text: string;
  /** When it was written, in milliseconds since the epoch. */
  at: number;
}

/** Writes the progress feed of one job while it runs here, at a rate that is useful to readers. */
export class Reporter {
  readonly #feeds: ProgressFeeds;
  readonly #promise: { id: string; createdAt: number; timeoutAt: number };
  readonly #log: LineLog;
  /** The number of the newest entry; undefined until it is known. */
  #n: number | undefined;
  #written = "";
  #lastWrite = 0;
  #state: ExecutionState | undefined;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(feeds: ProgressFeeds, promise: { id: string; createdAt: number; timeoutAt: number }, log: LineLog) {
    this.#feeds = feeds;
    this.#promise = promise;
    this.#log = log;
  }

  /** The newest entry, if it is known. */
  get newest(): LastWritten | undefined {
    return this.#n === undefined ? undefined : { n: this.#n, text: this.#written, at: this.#lastWrite };
  }

  set newest(entry: LastWritten | undefined) {
    this.#n = entry?.n;
    this.#written = entry?.text ?? "";
    this.#lastWrite = entry?.at ?? 0;
  }

  /** What the job waits for, for operators; without a state if it waits only briefly. */
  get waits(): { state?: WaitState; says?: string } {
    const { questions = [], steps = [], awaiting = 0, callbacks = [], sleepingUntil } = this.#state ?? {};
    const [asked] = questions;
    if (asked) return { state: "answer", says: asked.question.message };
    const failing = steps.find(({ error }) => error !== undefined);
    if (failing) return { state: "failing", says: `${failing.name}: ${failing.error}` };
    if (awaiting + callbacks.length > 0) return { state: "job", says: callbacks.join(", ") };
    const isLong = sleepingUntil !== undefined && sleepingUntil - Date.now() >= SHORTEST_SLEEP;
    return isLong ? { state: "sleeping", says: `until ${new Date(sleepingUntil).toISOString()}` } : {};
  }

  /** Takes a new state of the job, and writes it when the next entry is due. */
  tell(state: ExecutionState): void {
    this.#state = state;
    if (this.#timer || this.#isClosed) return;
    const gap = this.#gap;
    const due = hasNews(state) ? this.#lastWrite + gap : Math.max(this.#lastWrite + gap, since(state) + SHORTEST_STEP);
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        if (this.#state && deservesEntry(this.#state)) void this.#write(entryOf(this.#state));
      },
      Math.min(Math.max(due - Date.now(), 0), 2 ** 31 - 1),
    );
  }

  /**
   * Writes what readers must know while the job sleeps. For questions it tries for `patience` milliseconds.
   *
   * @throws {LeaseLost} when questions could not be written, because then nobody could ever answer them
   */
  async beforeSleep({ quiet, patience }: { quiet: boolean; patience: number }): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const state = this.#state;
    if (!state) return;
    const sleep = (state.sleepingUntil ?? 0) - Date.now();
    const sleeps = sleep >= SHORTEST_SLEEP && !quiet;
    if (!hasNews(state) && !sleeps && !(state.awaiting + state.callbacks.length > 0 && !quiet) && !this.#n) return;
    await this.#writing;
    const asks = state.questions.length > 0;
    // A loop of many short sleeps must not write an entry for each.
    const isBrief = (this.#n ?? 0) > MANY && Math.max(Date.now() - this.#lastWrite, sleep) < this.#gap;
    if (isBrief && questionsIn(this.#written) === JSON.stringify(entryOf(state).questions)) return;
    await this.#write(entryOf(state), asks ? patience : undefined);
    if (asks && this.#written === "") throw new LeaseLost("its questions could not be written");
  }

  blocked(reason: string): Promise<void> {
    // A state that is due later would hide the reason.
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return this.#write({ questions: {}, blocked: reason });
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  get #gap(): number {
    return Math.max(FIRST_GAP, (Date.now() - this.#promise.createdAt) * GAP);
  }

  #write(entry: FeedEntry, patience?: number): Promise<void> {
    const text = JSON.stringify(entry);
    if (text === this.#written || this.#isClosed) return this.#writing;
    this.#written = text;
    this.#lastWrite = Date.now();
    this.#writing = this.#writing.then(async () => {
      try {
        const { id, timeoutAt } = this.#promise;
        this.#n ??= (await this.#feeds.newest(this.#promise)).n;
        // A worker that had the job before may have written an entry even after its lease lapsed.
        while (!(await this.#feeds.write(id, this.#n + 1, entry, { timeoutAt, patience }))) this.#n += 1;
        this.#n += 1;
        if (!this.#isClosed) this.#log.info(fieldsOf(entry), "job goes on");
      } catch (error) {
        // The job does not depend on its feed, except for questions.
        this.#written = "";
        this.#n = undefined;
        this.#log.debug({ reason: reasonOf(error) }, "progress feed not written");
      }
    });
    return this.#writing;
  }
}

function questionsIn(text: string): string {
  return JSON.stringify(text === "" ? {} : (JSON.parse(text) as FeedEntry).questions);
}

/** Whether the state has something to show at once. */
function hasNews({ questions, progress, emitted, events, steps }: ExecutionState): boolean {
  return (
    questions.length > 0 ||
    progress !== undefined ||
    emitted !== undefined ||
    events !== undefined ||
    steps.some(({ error }) => error !== undefined)
  );
}

function since({ steps }: ExecutionState): number {
  return steps.length > 0 ? Math.min(...steps.map((step) => step.since)) : Number.POSITIVE_INFINITY;
}

function deservesEntry(state: ExecutionState): boolean {
  return hasNews(state) || since(state) + SHORTEST_STEP <= Date.now();
}

/** An entry as log fields, with a description of what the job does, unless that is only a step. */
function fieldsOf({ questions, step, ...entry }: FeedEntry): object {
  const isStep = step && (step.error !== undefined || (entry.message === undefined && !entry.progress));
  const text = isStep ? undefined : doing({ questions, ...(step && { step }), ...entry }, Date.now());
  const asks = Object.values(questions).map(({ question }) => question.message);
  return { doing: text, ...entry, ...(step && { step }), ...(asks.length > 0 && { asks }) };
}

function entryOf({
  steps,
  sleepingUntil,
  awaiting,
  callbacks,
  questions,
  progress,
  emitted,
  spent,
  events,
  run,
}: ExecutionState): FeedEntry {
  // A failing step is more interesting than one that has just begun.
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
    ...(callbacks.length > 0 && { callbacks: callbacks.slice(0, 5) }),
    ...(emitted !== undefined && { emitted }),
    ...(spent && { spent }),
    ...(events !== undefined && { events }),
    ...(run !== undefined && { run }),
  };
}
