import { LISTENER_INTERVAL, type Resonate } from "../resonate.ts";
import { KEEP_ALIVE, type PollConnection } from "../wire/poll-connections.ts";
import type { Serving } from "./serving.ts";

const encoder = new TextEncoder();
const COMMENT = encoder.encode(KEEP_ALIVE.comment);

/** The open event streams. Timers keep an object awake, and run only while a stream is open. */
export class PollStreams {
  readonly #resonate: Resonate;
  readonly #serving: Serving;
  readonly #durable: () => Promise<void>;
  readonly #open = new Map<ReadableStreamDefaultController<Uint8Array>, PollConnection>();
  #timers: ReturnType<typeof setInterval>[] = [];

  /**
   * `durable` resolves when all earlier commits are durable. The platform holds back the first byte of an answer until then,
   * but not a stream's later bytes: without waiting, a message could announce a change that is then lost.
   */
  constructor(resonate: Resonate, serving: Serving, durable: () => Promise<void>) {
    this.#resonate = resonate;
    this.#serving = serving;
    this.#durable = durable;
  }

  /**
   * Connects a reader, and returns the stream of its messages; undefined when there are too many connections. When the reader
   * leaves, the platform cancels the stream or aborts `signal`.
   */
  connect(group: string, id: string, signal: AbortSignal): ReadableStream<Uint8Array> | undefined {
    this.#serving.begin(); // Comes first, as it throws when nothing can be written.
    const connection = this.#resonate.connect(group, id);
    if (!connection) return undefined;
    let controller: ReadableStreamDefaultController<Uint8Array>;
    signal.addEventListener("abort", () => this.#leave(controller, connection));
    return new ReadableStream<Uint8Array>({
      start: (given) => {
        controller = given;
        this.#add(controller, connection);
        controller.enqueue(COMMENT);
      },
      // Called when the reader has taken all written bytes, so that a slow reader's messages wait in its `PollConnection`.
      pull: async () => {
        const messages = await this.#resonate.next(connection);
        if (!messages) return this.#end(controller);
        await this.#durable();
        controller.enqueue(encoder.encode(messages.map((message) => `data: ${message}\n\n`).join("")));
      },
      cancel: () => this.#leave(controller, connection),
    });
  }

  /** Ends all streams, so that their readers connect again. */
  endAll(): void {
    for (const [controller, connection] of [...this.#open]) this.#leave(controller, connection);
  }

  #leave(controller: ReadableStreamDefaultController<Uint8Array>, connection: PollConnection): void {
    this.#end(controller);
    this.#resonate.disconnect(connection);
  }

  #keepAlive(): void {
    if (this.#serving.isOver) {
      this.endAll();
      return;
    }
    // A stream that is not read has enough bytes waiting.
    for (const stream of this.#open.keys()) if ((stream.desiredSize ?? 0) > 0) stream.enqueue(COMMENT);
  }

  #end(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#remove(controller);
    try {
      controller.close();
    } catch {
      // The reader has left.
    }
  }

  #add(controller: ReadableStreamDefaultController<Uint8Array>, connection: PollConnection): void {
    this.#open.set(controller, connection);
    if (this.#timers.length > 0) return;
    this.#timers = [
      setInterval(() => this.#keepAlive(), KEEP_ALIVE.interval),
      setInterval(() => this.#resonate.dropDisconnectedListeners(), LISTENER_INTERVAL),
    ];
  }

  #remove(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#open.delete(controller);
    if (this.#open.size > 0) return;
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
  }
}
