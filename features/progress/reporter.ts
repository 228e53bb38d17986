import { type ExecutionState, LeaseLost } from "../../core/engine/index.ts";
import { activityIn, type FeedEntry, type LineLog, type ProgressFeeds, reasonOf } from "../../core/jobs/index.ts";

/** Steps and sleeps that are shorter than this get no entry. */
const MIN_STEP_MS = 1_000;
const MIN_SLEEP_MS = 10_000;

/**
 * The shortest time between two entries without questions: at first in milliseconds, later as a share of the job's age. Entries
 * are never removed; this limits them to about two hundred for any duration of a job.
 */
const MIN_GAP_MS = 100;
const MIN_GAP_SHARE = 0.1;

/** The number of entries after which short sleeps get none. */
const MAX_ENTRIES_OF_SHORT_SLEEPS = 32;

/** How many callbacks an entry names. */
const MAX_CALLBACKS = 5;

/** The newest entry of a progress feed: its number, or 0 if there is none, and its text. */
export interface LastEntry {
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
  #text = "";
  /** When it was written, in milliseconds since the epoch. */
  #writtenAt = 0;
  #state: ExecutionState | undefined;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #isClosed = false;

  /** `isNew`: the job has no entries. */
  constructor(
    feeds: ProgressFeeds,
    promise: { id: string; createdAt: number; timeoutAt: number },
    log: LineLog,
    isNew: boolean,
  ) {
    this.#feeds = feeds;
    this.#promise = promise;
    this.#log = log;
    if (isNew) this.#n = 0;
  }

  /** The newest entry, if it is known. */
  get last(): LastEntry | undefined {
    return this.#n === undefined ? undefined : { n: this.#n, text: this.#text, at: this.#writtenAt };
  }

  set last(entry: LastEntry | undefined) {
    this.#n = entry?.n;
    this.#text = entry?.text ?? "";
    this.#writtenAt = entry?.at ?? 0;
  }

  /** Takes a new state of the job, and writes it when the next entry is due. */
  update(state: ExecutionState): void {
    this.#state = state;
    if (this.#timer || this.#isClosed) return;
    const gap = this.#gap;
    const due = hasNews(state) ? this.#writtenAt + gap : Math.max(this.#writtenAt + gap, since(state) + MIN_STEP_MS);
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        if (this.#state && deservesEntry(this.#state)) void this.#write(entryOf(this.#state));
      },
      Math.min(Math.max(due - Date.now(), 0), 2 ** 31 - 1),
    );
  }

  /**
   * Writes what readers must know while the job sleeps. For questions it tries for so many milliseconds. `isQuiet`: readers do
   * not read the feed before the job's expected end.
   *
   * @throws {LeaseLost} when questions could not be written, because then nobody could ever answer them
   */
  async beforeSleep(
    state: ExecutionState,
    { isQuiet, questionTimeoutMs }: { isQuiet: boolean; questionTimeoutMs: number },
  ): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const sleepMs = (state.sleepingUntil ?? 0) - Date.now();
    const waits = sleepMs >= MIN_SLEEP_MS || state.awaiting + state.callbacks.length > 0;
    if (!hasNews(state) && !(waits && !isQuiet) && !this.#n) return;
    await this.#writing;
    const asks = state.questions.length > 0;
    // A loop of many short sleeps must not write an entry for each.
    const isBrief =
      (this.#n ?? 0) > MAX_ENTRIES_OF_SHORT_SLEEPS && Math.max(Date.now() - this.#writtenAt, sleepMs) < this.#gap;
    if (isBrief && questionsIn(this.#text) === JSON.stringify(entryOf(state).questions)) return;
    await this.#write(entryOf(state), asks ? questionTimeoutMs : undefined);
    if (asks && this.#text === "") throw new LeaseLost("its questions could not be written", { reason: "unreachable" });
  }

  blocked(reason: string, by?: FeedEntry["blocked_by"]): Promise<void> {
    // A state that is due later would hide the reason.
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return this.#write({ questions: {}, blocked: reason, ...(by && { blocked_by: by }) });
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  get #gap(): number {
    return Math.max(MIN_GAP_MS, (Date.now() - this.#promise.createdAt) * MIN_GAP_SHARE);
  }

  #write(entry: FeedEntry, timeoutMs?: number): Promise<void> {
    const text = JSON.stringify(entry);
    if (text === this.#text || this.#isClosed) return this.#writing;
    this.#text = text;
    this.#writtenAt = Date.now();
    this.#writing = this.#writing.then(async () => {
      try {
        const { id, timeoutAt } = this.#promise;
        if (this.#n === undefined) {
          const { n, entry: newest } = await this.#feeds.newest(this.#promise);
          this.#n = n;
          if (JSON.stringify(newest) === text) return;
        }
        // A worker that had the job before may have written an entry even after its lease lapsed.
        while (!(await this.#feeds.write(id, this.#n + 1, entry, { timeoutAt, retryForMs: timeoutMs }))) this.#n += 1;
        this.#n += 1;
        if (!this.#isClosed) this.#log.info(fieldsOf(entry), "job progress");
      } catch (error) {
        // The job does not depend on its feed, except for questions.
        this.#text = "";
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
  return hasNews(state) || since(state) + MIN_STEP_MS <= Date.now();
}

/** An entry as log fields, with a description of what the job does, unless that is only a step. */
function fieldsOf({ questions, step, ...entry }: FeedEntry): object {
  const isStep = step && (step.error !== undefined || (entry.message === undefined && !entry.progress));
  const text = isStep ? undefined : activityIn({ questions, ...(step && { step }), ...entry }, Date.now());
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
    ...(callbacks.length > 0 && { callbacks: callbacks.slice(0, MAX_CALLBACKS) }),
    ...(emitted !== undefined && { emitted }),
    ...(spent && { spent }),
    ...(events !== undefined && { events }),
    ...(run !== undefined && { run }),
  };
}
