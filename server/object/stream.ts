import type { Resonate } from "../resonate.ts";
import type { PollConnection } from "../wire/poll-connections.ts";
import type { Serving } from "./serving.ts";

/** Written at once, and every few seconds: by it a reader sees that the connection is alive. */
const COMMENT = new TextEncoder().encode(": keep-alive\n\n");
/** How often, in milliseconds. */
const KEEP_ALIVE = 5_000;
/** How often, in milliseconds, listeners are checked for whether their address is still connected. */
const LISTENER_INTERVAL = 120_000;

const encoder = new TextEncoder();

/** The event streams that are open. Its timers run only while there is one: they keep an object awake. */
export class PollStreams {
  readonly #resonate: Resonate;
  readonly #serving: Serving;
  readonly #durable: () => Promise<void>;
  readonly #open = new Map<ReadableStreamDefaultController<Uint8Array>, PollConnection>();
  #timers: ReturnType<typeof setInterval>[] = [];

  /**
   * `durable` resolves when all that was committed before is durable. The platform holds the first byte of an answer back
   * until then, but not the later ones of a stream: no message may tell of what could still be lost.
   */
  constructor(resonate: Resonate, serving: Serving, durable: () => Promise<void>) {
    this.#resonate = resonate;
    this.#serving = serving;
    this.#durable = durable;
  }

  /** The messages for a connection, until its reader leaves. */
  read(connection: PollConnection): ReadableStream<Uint8Array> {
    let controller: ReadableStreamDefaultController<Uint8Array>;
    return new ReadableStream<Uint8Array>({
      start: (given) => {
        controller = given;
        this.#serving.begin();
        this.#add(controller, connection);
        controller.enqueue(COMMENT);
      },
      // Called when what was written is taken: of a slow reader the messages wait with the connection, where it shows.
      pull: async () => {
        const messages = await this.#resonate.next(connection);
        if (!messages) return this.end(controller);
        await this.#durable();
        controller.enqueue(encoder.encode(messages.map((message) => `data: ${message}\n\n`).join("")));
      },
      cancel: () => {
        this.#remove(controller);
        this.#resonate.disconnect(connection);
      },
    });
  }

  /** Ends every stream: whoever reads one connects again. */
  endAll(): void {
    for (const [controller, connection] of [...this.#open]) {
      this.end(controller);
      this.#resonate.disconnect(connection);
    }
  }

  #keepAlive(): void {
    if (this.#serving.isOver) {
      this.endAll();
      return;
    }
    // One that is not read has enough waiting.
    for (const stream of this.#open.keys()) if ((stream.desiredSize ?? 0) > 0) stream.enqueue(COMMENT);
  }

  end(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#remove(controller);
    try {
      controller.close();
    } catch {
      // Its reader has left.
    }
  }

  #add(controller: ReadableStreamDefaultController<Uint8Array>, connection: PollConnection): void {
    this.#open.set(controller, connection);
    if (this.#timers.length > 0) return;
    this.#timers = [
      setInterval(() => this.#keepAlive(), KEEP_ALIVE),
      setInterval(() => this.#resonate.dropUnheardListeners(), LISTENER_INTERVAL),
    ];
  }

  #remove(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#open.delete(controller);
    if (this.#open.size > 0) return;
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
  }
}
