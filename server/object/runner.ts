import type { LeaseRef, PromiseRecord } from "../../core/store/protocol.ts";
import type { Resonate } from "../resonate.ts";
import type { PollConnection } from "../wire/poll-connections.ts";

/** The group of the connections by which runners hear of what has settled; no task is dispatched to it. */
const GROUP = "runner";

/** For how long after its last task a runner is told what it has asked for, in milliseconds: so long the platform keeps it in memory. */
const LINGER = 10_000;

/** A runner, as the object asks it. */
type Stub = () => { fetch(url: string, init: RequestInit): Promise<Response> };

/**
 * One runner, and the connection by which it hears of what it waits for and of jobs that are cancelled: while it runs
 * something, and a while longer. What comes over it is brought to the runner by requests, so that nothing stays open.
 */
export class Runner {
  readonly #resonate: Resonate;
  readonly #stub: Stub;
  readonly #durable: () => Promise<void>;
  #news: { address: string; connection: PollConnection } | undefined;
  #running = 0;
  #lastRun = 0;

  constructor(resonate: Resonate, stub: Stub, durable: () => Promise<void>) {
    this.#resonate = resonate;
    this.#stub = stub;
    this.#durable = durable;
  }

  /** Has a task run to its next suspension; whether the runner has the code for it. */
  async run(task: LeaseRef, promise: PromiseRecord): Promise<boolean> {
    if (!this.#isThere) this.#close();
    const news = this.#news ?? this.#open();
    this.#running += 1;
    try {
      const response = await this.#ask("/", JSON.stringify({ task, promise, news: news?.address }));
      return ((await response.json()) as { isKnown: boolean }).isKnown;
    } finally {
      this.#running -= 1;
      this.#lastRun = Date.now();
    }
  }

  /** Whether what it knew may be known to it still. */
  get #isThere(): boolean {
    return this.#running > 0 || Date.now() - this.#lastRun < LINGER;
  }

  #open() {
    // Another address each time: what was to be told at the one before may have been told to nobody.
    const id = crypto.randomUUID();
    const connection = this.#resonate.connect(GROUP, id);
    if (!connection) return undefined;
    this.#news = { address: `poll://uni@${GROUP}/${id}`, connection };
    void this.#tell(connection);
    return this.#news;
  }

  #close(): void {
    if (this.#news) this.#resonate.disconnect(this.#news.connection);
    this.#news = undefined;
  }

  async #tell(connection: PollConnection): Promise<void> {
    for (;;) {
      const messages = await this.#resonate.next(connection);
      if (!messages) return;
      if (!this.#isThere) return this.#close();
      try {
        await this.#durable();
        await this.#ask("/news", `[${messages.join()}]`);
      } catch (error) {
        // The next task comes with another address, and the runner asks for what it has missed.
        console.warn(JSON.stringify({ level: "warn", msg: "news not told", reason: String(error) }));
        return this.#close();
      }
    }
  }

  async #ask(path: string, body: string): Promise<Response> {
    const response = await this.#stub().fetch(`https://runner${path}`, { method: "POST", body });
    if (!response.ok) throw new Error(`the runner answered ${response.status}`);
    return response;
  }
}
