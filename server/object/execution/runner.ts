import type { RunnerNews } from "../../../core/jobs/index.ts";
import type { LeaseRef, PromiseRecord } from "../../../core/resonate/index.ts";
import type { PollConnection } from "../../engine/poll-connections.ts";
import type { Resonate } from "../../engine/resonate.ts";

/** The group of the connections over which runners receive news of settled promises; no task is dispatched to it. */
const NEWS_GROUP = "runner";

/** How long a runner still receives news after its last task: for so long the platform keeps it in memory. */
const LINGER_MS = 10_000;

interface RunnerAnswer {
  /** Whether the runner has code for the task. */
  isKnown: boolean;
  /** What happened in it since its last answer. */
  report?: RunnerNews;
}

type Stub = () => { fetch(url: string, init: RequestInit): Promise<Response> };

/**
 * One runner, with a connection for news of its awaited promises and of canceled jobs. The connection is open while the runner
 * executes a task and a while longer. Its news goes to the runner by requests, so that no stream stays open.
 */
export class Runner {
  readonly #resonate: Resonate;
  readonly #stub: Stub;
  readonly #durable: () => Promise<void>;
  #newsConnection: { address: string; connection: PollConnection } | undefined;
  #running = 0;
  #lastRun = 0;

  constructor(resonate: Resonate, stub: Stub, durable: () => Promise<void>) {
    this.#resonate = resonate;
    this.#stub = stub;
    this.#durable = durable;
  }

  /** Runs a task to its next suspension. */
  async run(task: LeaseRef, promise: PromiseRecord): Promise<RunnerAnswer> {
    if (!this.#isAwake) this.#close();
    const news = this.#newsConnection ?? this.#open();
    this.#running += 1;
    try {
      const response = await this.#post("/", JSON.stringify({ task, promise, newsAddress: news?.address }));
      return await response.json();
    } finally {
      this.#running -= 1;
      this.#lastRun = Date.now();
    }
  }

  /** Whether the runner may still be in memory, with its listeners. */
  get #isAwake(): boolean {
    return this.#running > 0 || Date.now() - this.#lastRun < LINGER_MS;
  }

  #open() {
    // A new address each time, because news for the previous address may have been lost.
    const id = crypto.randomUUID();
    const connection = this.#resonate.connect(NEWS_GROUP, id);
    if (!connection) return undefined;
    this.#newsConnection = { address: `poll://uni@${NEWS_GROUP}/${id}`, connection };
    void this.#forwardNews(connection);
    return this.#newsConnection;
  }

  #close(): void {
    if (this.#newsConnection) this.#resonate.disconnect(this.#newsConnection.connection);
    this.#newsConnection = undefined;
  }

  async #forwardNews(connection: PollConnection): Promise<void> {
    for (;;) {
      const messages = await this.#resonate.next(connection);
      if (!messages) return;
      if (!this.#isAwake) return this.#close();
      try {
        await this.#durable();
        await this.#post("/news", `[${messages.join()}]`);
      } catch (error) {
        // The next task comes with a new address, at which the runner requests the news that it has missed.
        console.warn(JSON.stringify({ level: "warn", msg: "news not delivered", reason: String(error) }));
        return this.#close();
      }
    }
  }

  async #post(path: string, body: string): Promise<Response> {
    const response = await this.#stub().fetch(`https://runner${path}`, { method: "POST", body });
    if (!response.ok) throw new Error(`the runner answered ${response.status}`);
    return response;
  }
}
