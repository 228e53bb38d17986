import { apart, FORM, FORM_HEADER } from "../../core/jobs/form.ts";
import { type Batch, callersOf, MAX_REPORT, REPORTS, reportToken, UNREAD } from "../../core/jobs/reports.ts";
import type { ResonateClient } from "../../core/resonate/connection/client.ts";
import type { PromiseRecord } from "../../core/resonate/connection/protocol.ts";
import { localId, splitKey } from "../../core/resonate/ids.ts";
import { type LineLog, type Reports, reasonOf } from "../../worker/execution/instruments.ts";
import { type AboutWorker, Figures } from "../operators/figures.ts";
import type { WorkerReport } from "../operators/worker-report.ts";

/** The shortest time between two requests, and the longest one after failures, in milliseconds. It doubles with each failure. */
const PAUSE = 1_000;
const LONGEST_PAUSE = 60_000;

/** How long reports are gathered before a request, and how long that request may take, in milliseconds. */
const GATHER = 20;
const PATIENCE = 5_000;

/** How often a worker without news reports; and how often it does if nobody reads reports, to learn whether that has changed. */
const IDLE = 20_000;
const UNREAD_IDLE = 600_000;

/** The largest number of ids in one request. Further ids are dropped. */
const MOST_IDS = 900;

interface EdgeReportsOptions {
  /** The edge's address, and the key that it shares with workers. */
  url: string;
  key: string;
  client: ResonateClient;
  namespace: string;
  log: LineLog;
  about(): AboutWorker;
}

/**
 * Reports to the edge, with at most one request a second. Lost ids do not matter, as the edge also looks at jobs by itself.
 * Lost figures for operators are sent again.
 */
export class EdgeReports implements Reports {
  readonly #options: EdgeReportsOptions;
  #batch: Batch = {};
  #count = 0;
  /** The figures for operators that are being gathered. */
  readonly figures = new Figures(() => {
    if (this.#isRead) this.#arm(PAUSE);
  });
  /** Whether the edge has operators, by its last answer. */
  #isRead = true;
  /** Why this worker must not run beside the edge; undefined if it may. */
  #apart: string | undefined;
  /** The report to operators that is not known to have arrived. */
  #unsent: WorkerReport | undefined;
  #timer: NodeJS.Timeout | undefined;
  #idle: NodeJS.Timeout | undefined;
  /** When the timer fires, by `performance.now()`. */
  #due = 0;
  #sending: Promise<void> | undefined;
  /** When the next request may begin, by `performance.now()`. */
  #next = 0;
  #pause = PAUSE;

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
    if (this.#apart !== undefined) throw new Error(this.#apart);
    // By the time of this second report the worker is connected.
    if (this.#isRead) this.#arm(GATHER);
    this.#idle = setInterval(() => {
      if (this.#isRead || performance.now() > this.#next + UNREAD_IDLE) this.#arm(GATHER);
    }, IDLE).unref();
  }

  async close(): Promise<void> {
    clearInterval(this.#idle);
    clearTimeout(this.#timer);
    await this.#sending;
    do await this.#send();
    while (this.#isRead && !this.#unsent && this.figures.hasNews);
  }

  #add(kind: "ended" | "started", key: string, id: string): void {
    if (this.#count >= MOST_IDS) return;
    this.#count += 1;
    const byCaller = this.#batch[kind] ?? {};
    this.#batch[kind] = byCaller;
    byCaller[key] = [...(byCaller[key] ?? []), id];
    this.#arm(GATHER);
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
      if (this.#count > 0 || (this.#isRead && (this.figures.hasNews || this.#unsent))) this.#arm(GATHER);
    });
    return this.#sending;
  }

  async #send(): Promise<void> {
    const { url, key, log, about } = this.#options;
    this.#unsent ??= this.figures.take(about());
    const body = JSON.stringify({ ...this.#batch, worker: this.#unsent } satisfies Batch);
    this.#batch = {};
    this.#count = 0;
    const begun = performance.now();
    try {
      if (body.length > MAX_REPORT) this.#unsent = undefined;
      const headers = { "content-type": "application/json", authorization: `Bearer ${await reportToken(key)}` };
      const signal = AbortSignal.timeout(PATIENCE);
      const answer = await fetch(new URL(`/${REPORTS}`, url), { method: "POST", headers, body, signal });
      await answer.arrayBuffer();
      if (!answer.ok) throw new Error(`the edge answered ${answer.status}`);
      this.#isRead = !answer.headers.has(UNREAD);
      this.#compare(Number(answer.headers.get(FORM_HEADER)));
      this.#unsent = undefined;
      this.#pause = PAUSE;
    } catch (error) {
      this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE);
      log.debug({ reason: reasonOf(error) }, "reports lost");
    }
    this.#next = begun + this.#pause;
  }

  /** Checks whether this worker may run beside the edge, which may have been replaced by another version. */
  #compare(form: number): void {
    const { url, log } = this.#options;
    const found = form === FORM ? undefined : apart("this worker", FORM, `the edge at ${new URL(url).host}`, form);
    if (found !== undefined && found !== this.#apart) log.error({ reason: found }, "versions mixed");
    this.#apart = found;
  }
}
