/** Server-sent event streams: they keep the connection alive, end in time and hold a slot of their caller. */
import type { StreamTerms } from "../../core/tools/index.ts";

/**
 * How often a stream sends a keep-alive, in milliseconds. Writing is the only way to notice that a caller has left, so this
 * also bounds how long work continues for nobody.
 */
export const KEEP_ALIVE_MS = 2_000;

/** How long a stream may be open, in milliseconds. */
export const MAX_STREAM_MS = 15 * 60_000;

/** How long a message that is being sent at the deadline may take, in milliseconds. */
const LAST_MESSAGE_MS = 3_000;

const encoder = new TextEncoder();

/** How long a body stays open that nobody reads, in milliseconds. */
export const MAX_STALL_MS = 20_000;

/** How many bytes may wait for the reader of a stream before progress is left out and events are no longer read. */
const BUFFER_BYTES = 64 * 1024;

/** How many bytes may wait for the reader when the next message comes. If there are more, the stream ends. */
const MAX_UNREAD_BYTES = 1024 * 1024;

/**
 * Holds the slot of a stream that opens now, and calls `onTick` again and again with whether its deadline has passed. Returns a
 * function that ends this.
 */
export function keepOpen(terms: StreamTerms, onTick: (isOver: boolean) => void): () => void {
  const slot = terms.slot();
  // Measured by a clock that nobody sets, since a test may move `Date`.
  const end = performance.now() + terms.until - Date.now() + LAST_MESSAGE_MS;
  const ticker = setInterval(() => {
    slot.renew();
    onTick(terms.until === 0 || performance.now() >= end);
  }, KEEP_ALIVE_MS);
  return () => {
    clearInterval(ticker);
    slot.release();
  };
}

/** Sends a message on a stream. */
export type Send = (message: { method?: string; [field: string]: unknown }) => void;

/** What a stream's writer has. */
export interface StreamWriter {
  send: Send;
  /** Aborts at the deadline, when the caller disconnects, and when it does not read. */
  signal: AbortSignal;
  /** Resolves once the reader has read most of what was sent, or the stream is over. */
  ready(): Promise<void>;
}

interface EventStreamOptions {
  disconnected: AbortSignal;
  terms: StreamTerms;
  /** Sends the last messages of a stream that is closed before it has ended by itself. */
  onCut?(send: Send): void;
  /** The text of a keep-alive. */
  alive?: string;
}

/** A response that streams what `run` sends, until `run` is done, the deadline has passed or the caller does not read. */
export function eventStream(run: (writer: StreamWriter) => Promise<void>, options: EventStreamOptions): Response {
  const queue = new EventQueue(run, options);
  const body = new ReadableStream<Uint8Array>(
    {
      start: (controller) => queue.start(controller),
      pull: () => queue.pull(),
      cancel: () => queue.leave(),
    },
    { highWaterMark: BUFFER_BYTES, size: (chunk) => chunk?.byteLength ?? 0 },
  );
  return new Response(body, { headers: STREAM_HEADERS });
}

/** The queue of a stream: it holds a bounded number of bytes, and its slot until they are read. */
class EventQueue {
  readonly #run: (writer: StreamWriter) => Promise<void>;
  readonly #options: EventStreamOptions;
  /** Aborted when the writer has nothing more to do. */
  readonly #over = new AbortController();
  readonly #signal: AbortSignal;
  readonly #waiting = new Set<() => void>();
  /** How many bytes were sent in all. */
  #sentBytes = 0;
  /** How many of them were read at the last look, and when this number last changed. */
  #readBytes = 0;
  #readAt = performance.now();
  /** Whether nothing more will be sent. */
  #isDone = false;
  #isClosed = false;
  #end = () => {};
  #controller!: ReadableStreamDefaultController<Uint8Array>;

  constructor(run: (writer: StreamWriter) => Promise<void>, options: EventStreamOptions) {
    this.#run = run;
    this.#options = options;
    this.#signal = AbortSignal.any([this.#over.signal, options.disconnected]);
    this.#signal.addEventListener("abort", () => this.#wake(), { once: true });
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#controller = controller;
    this.#end = keepOpen(this.#options.terms, (isOver) => this.#tick(isOver));
    const send: Send = (message) => this.#send(message);
    this.#run({ send, signal: this.#signal, ready: () => this.#ready() })
      .catch(() => {}) // The stream ends without a result.
      .finally(() => this.#finish());
  }

  pull(): void {
    this.#wake();
    if (this.#isDone) this.#close();
  }

  get #unreadBytes(): number {
    return BUFFER_BYTES - (this.#controller.desiredSize ?? BUFFER_BYTES);
  }

  #send(message: Parameters<Send>[0]): void {
    const isOptional = message.method === "notifications/progress";
    if (this.#unreadBytes > MAX_UNREAD_BYTES) this.#cut();
    else this.#write(`event: message\ndata: ${JSON.stringify(message)}\n\n`, isOptional);
  }

  #write(text: string, isOptional: boolean): void {
    if (this.#isClosed || this.#isDone || (isOptional && this.#unreadBytes >= BUFFER_BYTES)) return;
    try {
      const bytes = encoder.encode(text);
      this.#controller.enqueue(bytes);
      this.#sentBytes += bytes.length;
    } catch {
      this.leave();
    }
  }

  #tick(isOver: boolean): void {
    if (this.#isStalled()) this.#cut();
    else if (!isOver) this.#write(this.#options.alive ?? ": keepalive\n\n", true);
    else if (!this.#isDone) {
      this.#options.onCut?.((message) => this.#send(message));
      this.#finish();
    }
  }

  /** Whether something waits for the reader, who has read nothing for a while. */
  #isStalled(): boolean {
    const readBytes = this.#sentBytes - this.#unreadBytes;
    if (readBytes !== this.#readBytes || this.#unreadBytes === 0) {
      this.#readBytes = readBytes;
      this.#readAt = performance.now();
    }
    return performance.now() - this.#readAt >= MAX_STALL_MS;
  }

  async #ready(): Promise<void> {
    while (!this.#signal.aborted && this.#unreadBytes >= BUFFER_BYTES)
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }

  /** Ends the stream. It closes, and frees its slot, once little is left to read. */
  #finish(): void {
    this.#isDone = true;
    this.#over.abort();
    if (this.#unreadBytes < BUFFER_BYTES) this.#close();
  }

  #close(): void {
    if (!this.#isClosed) this.#controller.close();
    this.leave();
  }

  /** Ends the stream of a reader that does not read, and drops what waits for it. */
  #cut(): void {
    if (!this.#isClosed) this.#controller.error(new Error("The stream is not read."));
    this.leave();
  }

  leave(): void {
    this.#isClosed = true;
    this.#over.abort();
    this.#end();
  }
}

/** Proxies must neither change the stream nor buffer it; the last header is for nginx. */
const STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};

export const isStream = (response: Response): boolean =>
  response.body !== null && response.headers.get("content-type")?.startsWith("text/event-stream") === true;

/** Applies the terms to a response of the SDK if it is a stream. `onEnd` is called when the response is complete. */
export function boundedStream(response: Response, terms: StreamTerms, onEnd = () => {}): Response {
  if (!isStream(response)) {
    onEnd();
    return response;
  }
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  let isStopped = false;
  /** When a chunk was handed over that nobody has taken yet. */
  let unreadSince = Number.POSITIVE_INFINITY;
  const leave = keepOpen(terms, (isOver) => {
    const isStalled = performance.now() - unreadSince >= MAX_STALL_MS;
    if (!isOver && !isStalled) return;
    isStopped = true;
    reader.cancel().catch(() => {});
    if (isStalled) end();
  });
  const end = () => {
    leave();
    onEnd();
  };
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      unreadSince = Number.POSITIVE_INFINITY;
      try {
        const { done, value } = await reader.read();
        unreadSince = performance.now();
        if (!done) return controller.enqueue(value);
        end();
        controller.close();
      } catch (error) {
        end();
        if (isStopped) controller.close();
        else controller.error(error);
      }
    },
    cancel(reason) {
      end();
      return reader.cancel(reason);
    },
  });
  return new Response(body, response);
}
