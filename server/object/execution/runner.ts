import type { LeaseRef, PromiseRecord } from "../../../core/resonate/connection/protocol.ts";
import type { RunnerNews } from "../../../features/operators/figures.ts";
import type { Resonate } from "../../resonate.ts";
import type { PollConnection } from "../../wire/poll-connections.ts";

/** The group of the connections over which runners receive news of settled promises; no task is dispatched to it. */
const GROUP = "runner";

/** How long a runner still receives news after its last task, in milliseconds: for so long the platform keeps it in memory. */
const LINGER = 10_000;

interface Ran {
  /** Whether the runner has code for the task. */
  isKnown: boolean;
  told?: RunnerNews;
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
  #listening: { address: string; connection: PollConnection } | undefined;
  #running = 0;
  #lastRun = 0;

  constructor(resonate: Resonate, stub: Stub, durable: () => Promise<void>) {
    this.#resonate = resonate;
    this.#stub = stub;
    this.#durable = durable;
  }

  /** Runs a task to its next suspension. */
  async run(task: LeaseRef, promise: PromiseRecord): Promise<Ran> {
    if (!this.#isAwake) this.#close();
    const listening = this.#listening ?? this.#open();
    this.#running += 1;
    try {
      const response = await this.#ask("/", JSON.stringify({ task, promise, news: listening?.address }));
      return await response.json();
    } finally {
      this.#running -= 1;
      this.#lastRun = Date.now();
    }
  }

  /** Whether the runner may still be in memory, with its listeners. */
  get #isAwake(): boolean {
    return this.#running > 0 || Date.now() - this.#lastRun < LINGER;
  }

  #open() {
    // A new address each time, because news for the previous address may have been lost.
    const id = crypto.randomUUID();
    const connection = this.#resonate.connect(GROUP, id);
    if (!connection) return undefined;
    this.#listening = { address: `poll://uni@${GROUP}/${id}`, connection };
    void this.#passOn(connection);
    return this.#listening;
  }

  #close(): void {
    if (this.#listening) this.#resonate.disconnect(this.#listening.connection);
    this.#listening = undefined;
  }

  async #passOn(connection: PollConnection): Promise<void> {
    for (;;) {
      const messages = await this.#resonate.next(connection);
      if (!messages) return;
      if (!this.#isAwake) return this.#close();
      try {
        await this.#durable();
        await this.#ask("/news", `[${messages.join()}]`);
      } catch (error) {
        // The next task comes with a new address, which makes the runner ask for the news that it has missed.
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
