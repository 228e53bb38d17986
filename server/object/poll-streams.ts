import type { PollConnection } from "../engine/poll-connections.ts";
import { LISTENER_SWEEP_INTERVAL_MS, type Resonate } from "../engine/resonate.ts";
import { eventsOf, KEEP_ALIVE_COMMENT, KEEP_ALIVE_INTERVAL_MS } from "../wire/event-stream.ts";
import type { ServingMark } from "./serving-mark.ts";

const encoder = new TextEncoder();
const KEEP_ALIVE_BYTES = encoder.encode(KEEP_ALIVE_COMMENT);

/** The open event streams. Timers keep an object awake, and run only while a stream is open. */
export class PollStreams {
  readonly #resonate: Resonate;
  readonly #mark: ServingMark;
  readonly #durable: () => Promise<void>;
  readonly #connections = new Map<ReadableStreamDefaultController<Uint8Array>, PollConnection>();
  #timers: ReturnType<typeof setInterval>[] = [];

  /**
   * `durable` resolves when all earlier commits are durable. The platform holds back the first byte of an answer until then,
   * but not a stream's later bytes: without waiting, a message could announce a change that is then lost.
   */
  constructor(resonate: Resonate, mark: ServingMark, durable: () => Promise<void>) {
    this.#resonate = resonate;
    this.#mark = mark;
    this.#durable = durable;
  }

  /**
   * Connects a reader, and returns the stream of its messages; undefined if there are too many connections. When the reader
   * leaves, the platform cancels the stream or aborts `signal`.
   */
  connect(group: string, id: string, signal: AbortSignal): ReadableStream<Uint8Array> | undefined {
    this.#mark.set(); // Comes first, as it throws if nothing can be written.
    const connection = this.#resonate.connect(group, id);
    if (!connection) return undefined;
    let controller: ReadableStreamDefaultController<Uint8Array>;
    signal.addEventListener("abort", () => this.#leave(controller, connection));
    return new ReadableStream<Uint8Array>({
      start: (streamController) => {
        controller = streamController;
        this.#add(controller, connection);
        controller.enqueue(KEEP_ALIVE_BYTES);
      },
      // Called when the reader has taken all written bytes, so that a slow reader's messages wait in its `PollConnection`.
      pull: async () => {
        const messages = await this.#resonate.next(connection);
        if (!messages) return this.#close(controller);
        await this.#durable();
        controller.enqueue(encoder.encode(eventsOf(messages)));
      },
      cancel: () => this.#leave(controller, connection),
    });
  }

  /** Closes all streams, so that their readers connect again. */
  closeAll(): void {
    for (const [controller, connection] of [...this.#connections]) this.#leave(controller, connection);
  }

  #leave(controller: ReadableStreamDefaultController<Uint8Array>, connection: PollConnection): void {
    this.#close(controller);
    this.#resonate.disconnect(connection);
  }

  #keepAlive(): void {
    if (this.#mark.isReplaced) {
      this.closeAll();
      return;
    }
    // A stream that is not read has enough bytes waiting.
    for (const stream of this.#connections.keys()) if ((stream.desiredSize ?? 0) > 0) stream.enqueue(KEEP_ALIVE_BYTES);
  }

  #close(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#remove(controller);
    try {
      controller.close();
    } catch {
      // The reader has left.
    }
  }

  #add(controller: ReadableStreamDefaultController<Uint8Array>, connection: PollConnection): void {
    this.#connections.set(controller, connection);
    if (this.#timers.length > 0) return;
    this.#timers = [
      setInterval(() => this.#keepAlive(), KEEP_ALIVE_INTERVAL_MS),
      setInterval(() => this.#resonate.dropDisconnectedListeners(), LISTENER_SWEEP_INTERVAL_MS),
    ];
  }

  #remove(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#connections.delete(controller);
    if (this.#connections.size > 0) return;
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
  }
}
