import type { DurablePromise, RemoteStore } from "./resonate/store.ts";

/** The pause before a lost or refused connection is tried again, in milliseconds: doubled from first to last. */
const FIRST_PAUSE = 250;
const LAST_PAUSE = 4_000;

export interface AwaitOptions {
  /** Milliseconds. */
  timeout: number;
  /** Aborts the wait: the caller went away. */
  signal: AbortSignal;
  /** Called once for each name whose promise has settled, and for each that has none. */
  onSettled(name: string, promise: DurablePromise | undefined): void;
}

/**
 * Waits until every promise in `names` has settled, the time is up or the caller is gone, and returns the names still
 * pending. Settlements are pushed over one SSE connection, however many names there are; while the server refuses or
 * loses it, the promises are read, with back-off.
 *
 * @throws {ResonateUnavailable} when the server cannot be asked at all, or could not be when the time was up
 */
export async function awaitSettled(
  store: RemoteStore,
  names: readonly string[],
  { timeout, signal: caller, onSettled }: AwaitOptions,
): Promise<string[]> {
  const pending = new Set(names);
  const allSettled = new AbortController();
  const signal = AbortSignal.any([caller, allSettled.signal, AbortSignal.timeout(timeout)]);
  const over = aborted(signal);

  const settle = (name: string, promise: DurablePromise | undefined) => {
    if (promise?.state === "pending" || !pending.delete(name)) return;
    onSettled(name, promise);
    if (pending.size === 0) allSettled.abort();
  };
  let reached = false;
  let failure: unknown;
  const ask = async (read: (name: string) => Promise<DurablePromise | undefined>) => {
    const asked = [...pending].map(async (name) => {
      const promise = await read(name);
      reached = true;
      settle(name, promise);
    });
    await Promise.all(asked);
    failure = undefined;
  };

  for (let pause = FIRST_PAUSE; !signal.aborted; pause = Math.min(pause * 2, LAST_PAUSE)) {
    const failed = new AbortController();
    try {
      const open = AbortSignal.any([signal, failed.signal]);
      const channel = await store.open(({ name, promise }) => settle(name, promise), open);
      // Only now: a message to an address without a connection is dropped. The answer tells what has settled already.
      await ask((name) => store.listen(name, channel, signal));
      pause = FIRST_PAUSE;
      await Promise.race([channel.closed, over]);
    } catch {
      failed.abort(); // a server serves a bounded number of connections
      try {
        await ask((name) => store.get(name, signal));
      } catch (error) {
        // A call that the end of the wait has cut short says nothing about the server.
        if (!reached || !signal.aborted) failure = error;
        if (!reached) break;
      }
    }
    await Promise.race([new Promise((resolve) => setTimeout(resolve, pause)), over]);
  }
  if (failure !== undefined && pending.size > 0 && !caller.aborted) throw failure;
  return [...pending];
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
