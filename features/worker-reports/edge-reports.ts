import {
  type Batch,
  callersOf,
  formatMismatch,
  JOB_FORMAT_HEADER,
  JOB_FORMAT_VERSION,
  type LineLog,
  MAX_REPORT,
  NO_OPERATORS_HEADER,
  REPORTS_PATH,
  reasonOf,
  reportToken,
  type WorkerReport,
  type WorkerState,
  WorkerStats,
} from "../../core/jobs/index.ts";
import { localId, type PromiseRecord, type ResonateClient, splitKey } from "../../core/resonate/index.ts";

/** The shortest time between two requests, and the longest one after failures. It doubles with each failure. */
const MIN_INTERVAL_MS = 1_000;
const MAX_INTERVAL_MS = 60_000;

/** How long reports are gathered before a request, and how long that request may take. */
const GATHER_MS = 20;
const REQUEST_TIMEOUT_MS = 5_000;

/** How often a worker without news reports; and how often it does if nobody reads reports, to learn whether that has changed. */
const IDLE_INTERVAL_MS = 20_000;
const PRESENCE_INTERVAL_MS = 600_000;

/** The largest number of ids in one request. Further ids are dropped. */
const MAX_IDS = 900;

interface EdgeReportsOptions {
  /** The edge's address, and the key that it shares with workers. */
  url: string;
  key: string;
  client: ResonateClient;
  namespace: string;
  log: LineLog;
  state(): WorkerState;
}

/**
 * Reports to the edge, with at most one request a second. Lost ids do not matter, as the edge also looks at jobs by itself.
 * Lost statistics for operators are sent again.
 */
export class EdgeReports {
  readonly #options: EdgeReportsOptions;
  #batch: Batch = {};
  #count = 0;
  /** The statistics for operators that are being gathered. */
  readonly stats = new WorkerStats(() => {
    if (this.#hasOperators) this.#arm(MIN_INTERVAL_MS);
  });
  /** Whether the edge has operators, by its last answer. */
  #hasOperators = true;
  /** Why this worker must not run beside the edge; undefined if it may. */
  #conflict: string | undefined;
  /** The report to operators that is not known to have arrived. */
  #unsent: WorkerReport | undefined;
  #timer: NodeJS.Timeout | undefined;
  #idle: NodeJS.Timeout | undefined;
  /** When the timer fires, by `performance.now()`. */
  #due = 0;
  #sending: Promise<void> | undefined;
  /** When the next request may begin, by `performance.now()`. */
  #next = 0;
  #pause = MIN_INTERVAL_MS;

  constructor(options: EdgeReportsOptions) {
    this.#options = options;
  }

  ended(promise: PromiseRecord): void {
    callersOf(promise, this.#options.client, this.#options.namespace)
      .then((keys) => {
        for (const key of keys) this.#add("ended", key, promise.id);
      })
      .catch(() => {}); // Nothing depends on reports.
  }

  started(id: string): void {
    const { key } = splitKey(localId(id, this.#options.namespace));
    if (key !== "") this.#add("started", key, id);
  }

  /**
   * Reports at once that this worker is there, and repeats it at intervals.
   *
   * @throws {Error} when the edge answers that this worker must not run beside it
   */
  async start(): Promise<void> {
    await this.#begin();
    if (this.#conflict !== undefined) throw new Error(this.#conflict);
    // By the time of this second report the worker is connected.
    if (this.#hasOperators) this.#arm(GATHER_MS);
    this.#idle = setInterval(() => {
      if (this.#hasOperators || performance.now() > this.#next + PRESENCE_INTERVAL_MS) this.#arm(GATHER_MS);
    }, IDLE_INTERVAL_MS).unref();
  }

  async close(): Promise<void> {
    clearInterval(this.#idle);
    clearTimeout(this.#timer);
    await this.#sending;
    do await this.#send();
    while (this.#hasOperators && !this.#unsent && this.stats.hasNews);
  }

  #add(kind: "ended" | "started", key: string, id: string): void {
    if (this.#count >= MAX_IDS) return;
    this.#count += 1;
    const byCaller = this.#batch[kind] ?? {};
    this.#batch[kind] = byCaller;
    byCaller[key] = [...(byCaller[key] ?? []), id];
    this.#arm(GATHER_MS);
  }

  /** Schedules a request `within` so many milliseconds, or as soon as the pause between requests allows. */
  #arm(within: number): void {
    const due = Math.max(performance.now() + within, this.#next);
    if (this.#sending || (this.#timer && this.#due <= due)) return;
    clearTimeout(this.#timer);
    this.#due = due;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.#begin();
    }, due - performance.now()).unref();
  }

  #begin(): Promise<void> {
    this.#sending = this.#send().finally(() => {
      this.#sending = undefined;
      if (this.#count > 0 || (this.#hasOperators && (this.stats.hasNews || this.#unsent))) this.#arm(GATHER_MS);
    });
    return this.#sending;
  }

  async #send(): Promise<void> {
    const { url, key, log, state } = this.#options;
    this.#unsent ??= this.stats.takeReport(state());
    const body = JSON.stringify({ ...this.#batch, worker: this.#unsent } satisfies Batch);
    this.#batch = {};
    this.#count = 0;
    const sentAt = performance.now();
    try {
      if (body.length > MAX_REPORT) this.#unsent = undefined;
      const headers = { "content-type": "application/json", authorization: `Bearer ${await reportToken(key)}` };
      const signal = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
      const answer = await fetch(new URL(`/${REPORTS_PATH}`, url), { method: "POST", headers, body, signal });
      await answer.arrayBuffer();
      if (!answer.ok) throw new Error(`the edge answered ${answer.status}`);
      this.#hasOperators = !answer.headers.has(NO_OPERATORS_HEADER);
      this.#compare(Number(answer.headers.get(JOB_FORMAT_HEADER)));
      this.#unsent = undefined;
      this.#pause = MIN_INTERVAL_MS;
    } catch (error) {
      this.#pause = Math.min(this.#pause * 2, MAX_INTERVAL_MS);
      log.debug({ reason: reasonOf(error) }, "reports lost");
    }
    this.#next = sentAt + this.#pause;
  }

  /** Checks whether this worker may run beside the edge, which may have been replaced by another version. */
  #compare(form: number): void {
    const { url, log } = this.#options;
    const conflict =
      form === JOB_FORMAT_VERSION
        ? undefined
        : formatMismatch("this worker", JOB_FORMAT_VERSION, `the edge at ${new URL(url).host}`, form);
    if (conflict !== undefined && conflict !== this.#conflict) log.error({ reason: conflict }, "versions mixed");
    this.#conflict = conflict;
  }
}
