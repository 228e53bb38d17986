import { setTimeout as delay } from "node:timers/promises";
import { HttpNetwork, isExecuteMsg, ResonateTimeoutException, type Send } from "@resonatehq/sdk";
import { EventSourceParserStream } from "eventsource-parser/stream";
import pRetry from "p-retry";
import { backoff } from "./backoff.ts";
import { type Logger, reasonOf } from "./logger.ts";
import { resonateRequests } from "./metrics.ts";

/** A task the server offers. */
export interface Offer {
  id: string;
  version: number;
}

export interface NetworkOptions {
  /** The Resonate server, without a trailing slash. */
  url: string;
  token: string | undefined;
  group: string;
  pid: string;
  /** How long a call is tried again when the server cannot be reached, in milliseconds. */
  patience: number;
  log: Logger;
}

const CONNECT_TIMEOUT = 10_000;
const RECONNECT = { base: 200, max: 5_000 };

/** The worker's side of the Resonate server: calls out, offered tasks in. */
export class Network {
  /** Whether offers can arrive at the moment. */
  connected = false;
  readonly #options: NetworkOptions;
  readonly #http: HttpNetwork;
  readonly #closed = new AbortController();

  constructor(options: NetworkOptions) {
    this.#options = options;
    const { url, token, patience } = options;
    this.#http = new HttpNetwork({ url, timeout: Math.min(10_000, patience), ...(token && { token }) });
  }

  /**
   * Sends one request. A server that is away for a moment must not cost a finished step, so the call is repeated for
   * as long as `patience` allows; every operation of the protocol is safe to repeat. Then ResonateTimeoutException.
   */
  send: Send = (request) =>
    pRetry(() => this.#sendOnce(request), {
      retries: Number.POSITIVE_INFINITY,
      maxRetryTime: this.#options.patience,
      minTimeout: 250,
      factor: 1,
      randomize: true,
      shouldRetry: ({ error }) => error instanceof ResonateTimeoutException,
    });

  #sendOnce: Send = async (request) => {
    const count = (status: string) => resonateRequests.inc({ kind: request.kind, status });
    try {
      const answer = await this.#http.send(request);
      count(String(answer.head.status));
      return answer;
    } catch (error) {
      count("none");
      throw error;
    }
  };

  /** Receives offers until `close`, reconnecting whenever the connection is lost or refused. */
  async listen(onOffer: (offer: Offer) => void, onConnect: () => void): Promise<void> {
    const { signal } = this.#closed;
    for (let failures = 0; !signal.aborted; ) {
      try {
        const messages = await this.#connect();
        failures = 0;
        this.connected = true;
        onConnect();
        for await (const { data } of messages) {
          const offer = parseOffer(data);
          if (offer) onOffer(offer);
        }
        this.#options.log.info("connection to Resonate ended");
      } catch (error) {
        if (isQuiet(error)) this.#options.log.debug("quiet connection to Resonate renewed");
        else if (!signal.aborted) this.#options.log.warn({ reason: reasonOf(error) }, "connection to Resonate failed");
      } finally {
        this.connected = false;
      }
      await delay(backoff(++failures, RECONNECT), undefined, { signal }).catch(() => {});
    }
  }

  /** Stops receiving; calls still go out. */
  close(): void {
    this.#closed.abort();
  }

  async #connect() {
    const { url, group, pid, token } = this.#options;
    const opening = new AbortController();
    const timer = setTimeout(() => opening.abort(new Error("no answer in time")), CONNECT_TIMEOUT);
    try {
      const response = await fetch(`${url}/poll/${encodeURIComponent(group)}/${encodeURIComponent(pid)}`, {
        headers: { Accept: "text/event-stream", ...(token && { Authorization: `Bearer ${token}` }) },
        signal: AbortSignal.any([this.#closed.signal, opening.signal]),
      });
      if (response.ok && response.body) {
        return response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
      }
      await response.body?.cancel();
      throw new Error(`the server answered ${response.status}`);
    } finally {
      clearTimeout(timer);
    }
  }
}

/**
 * Whether a connection ended because nothing came over it for some minutes, when fetch gives up: no fault where there is
 * nothing to do, and the way in which a connection that died unnoticed is found.
 */
function isQuiet(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && "code" in cause && cause.code === "UND_ERR_BODY_TIMEOUT";
}

function parseOffer(text: string): Offer | undefined {
  try {
    const message: unknown = JSON.parse(text);
    return isExecuteMsg(message) ? message.data.task : undefined;
  } catch {
    return undefined;
  }
}
