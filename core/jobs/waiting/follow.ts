/** Follows changes to promises, through losses of the connection over which they are pushed. */
import type { Channel } from "../../resonate/connection/connections.ts";
import { persist, within } from "../../resonate/pacing/backoff.ts";

/** The pauses before a lost or refused connection is opened again, in milliseconds. */
const RECONNECT_MS = { base: 250, max: 4_000 };

/** How long to wait for a connection before each read of the promises without it, in milliseconds. */
const OPENING_TIMEOUT_MS = { first: 500, next: 4_000 };

/** How long a connection may be silent before the promises are read anyway, in milliseconds: the server may drop messages. */
const MAX_SILENCE_MS = 30_000;

export interface Subscriber<News, Connection extends Channel> {
  /** Opens a connection until `signal` aborts. It is not opened again when it is lost: see {@link Channel.closed}. */
  open(onNews: (news: News) => void, signal: AbortSignal): Promise<Connection>;
  /**
   * Looks at every promise that still matters. With a channel it also asks for news to be pushed there. When it rejects, the
   * channel is given up and the promises are read without one.
   */
  check(channel: Connection | undefined): Promise<unknown>;
  /** Handles a settlement. When it rejects, the channel is given up. */
  onNews(news: News, channel: Connection): unknown;
  /** How long the connection may be silent before the next look, in milliseconds. Default: 30 s. */
  maxSilenceMs?: number;
}

/**
 * Keeps a subscriber up to date until `signal` aborts. Settlements are pushed over one connection. While that is missing,
 * slow to open or silent, the promises are read at intervals. Never rejects: it tries again.
 */
export function followPromises<News, Connection extends Channel>(
  { open, check, onNews, maxSilenceMs = MAX_SILENCE_MS }: Subscriber<News, Connection>,
  signal: AbortSignal,
): Promise<void> {
  const attempt = async () => {
    const ended = new AbortController();
    try {
      await follow(AbortSignal.any([signal, ended.signal]));
      ended.abort();
    } catch {
      ended.abort(); // frees the connection: a server has a limited number of them
      if (!signal.aborted) await check(undefined).catch(() => {});
    }
  };

  /** Opens one connection and follows it to its end. */
  const follow = async (until: AbortSignal) => {
    const lost = Promise.withResolvers<never>();
    lost.promise.catch(() => {});
    let lastNewsAt = 0;
    const opening: Promise<Connection> = open(async (news) => {
      lastNewsAt = Date.now();
      try {
        await onNews(news, await opening);
      } catch (error) {
        lost.reject(error);
      }
    }, until);
    opening.catch(() => {});
    let channel = await within(opening, OPENING_TIMEOUT_MS.first);
    while (!channel) {
      await check(undefined).catch(() => {});
      channel = await within(opening, OPENING_TIMEOUT_MS.next);
    }
    // Listens only now, as the server drops messages to an address without a connection. The answers tell what settled before.
    await check(channel);
    lastNewsAt = Math.max(lastNewsAt, Date.now());
    const closed = Promise.race([channel.closed.then(() => true), lost.promise]);
    while (!(await within(closed, lastNewsAt + maxSilenceMs - Date.now()))) {
      if (Date.now() < lastNewsAt + maxSilenceMs) continue;
      await check(channel);
      lastNewsAt = Date.now();
    }
  };

  return persist(attempt, { signal, ...RECONNECT_MS });
}
