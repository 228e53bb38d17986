import { type Batch, callersOf, MAX_REPORT, REPORTS, reportToken } from "../../core/jobs/reports.ts";
import type { ResonateClient } from "../../core/store/connection/client.ts";
import type { PromiseRecord } from "../../core/store/connection/protocol.ts";
import { localId, splitKey } from "../../core/store/ids.ts";
import { type LineLog, type Reports, reasonOf } from "../execution/instruments.ts";

/** The least time between two requests, the first pause after one that failed and the longest, in milliseconds. */
const PAUSE = 1_000;
const LONGEST_PAUSE = 60_000;

/** For how long what happens at once is gathered, and what a request may take, in milliseconds. */
const GATHER = 20;
const PATIENCE = 5_000;

/** How many ids one request has. What is more is lost. */
const MOST_IDS = 900;

interface EdgeReportsOptions {
  /** The edge's address, and the key that it shares with workers. */
  url: string;
  key: string;
  client: ResonateClient;
  namespace: string;
  log: LineLog;
}

/** Reports to the edge, in at most one request a second. A report that is lost is made up for by looks of the edge's own. */
export class EdgeReports implements Reports {
  readonly #options: EdgeReportsOptions;
  #batch: Batch = {};
  #count = 0;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> = Promise.resolve();
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
      .catch(() => {}); // It is never needed.
  }

  started(id: string): void {
    const { key } = splitKey(localId(id, this.#options.namespace));
    if (key !== "") this.#add("started", key, id);
  }

  /** Sends what has not been sent. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#sending;
    await this.#send();
  }

  #add(kind: keyof Batch, key: string, id: string): void {
    if (this.#count >= MOST_IDS) return;
    this.#count += 1;
    const byCaller = this.#batch[kind] ?? {};
    this.#batch[kind] = byCaller;
    byCaller[key] = [...(byCaller[key] ?? []), id];
    this.#arm();
  }

  #arm(): void {
    this.#timer ??= setTimeout(
      () => {
        this.#sending = this.#send().finally(() => {
          this.#timer = undefined;
          if (this.#count > 0) this.#arm();
        });
      },
      Math.max(GATHER, this.#next - performance.now()),
    ).unref();
  }

  async #send(): Promise<void> {
    const { url, key, log } = this.#options;
    const body = JSON.stringify(this.#batch);
    this.#batch = {};
    this.#count = 0;
    if (body === "{}" || body.length > MAX_REPORT) return;
    const begun = performance.now();
    try {
      const headers = { "content-type": "application/json", authorization: `Bearer ${await reportToken(key)}` };
      const signal = AbortSignal.timeout(PATIENCE);
      const answer = await fetch(new URL(`/${REPORTS}`, url), { method: "POST", headers, body, signal });
      await answer.arrayBuffer();
      if (!answer.ok) throw new Error(`the edge answered ${answer.status}`);
      this.#pause = PAUSE;
    } catch (error) {
      this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE);
      log.debug({ reason: reasonOf(error) }, "reports lost");
    }
    this.#next = begun + this.#pause;
  }
}
