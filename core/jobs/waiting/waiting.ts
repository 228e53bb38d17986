import type { Channel } from "../../resonate/connection/connections.ts";
import { ResonateRefused, undecryptableIn } from "../../resonate/connection/failures.ts";
import type { PromiseRecord } from "../../resonate/connection/protocol.ts";
import type { DurablePromise } from "../durable-promise.ts";
import { ReadRoom } from "../read-room.ts";
import type { RemoteStore } from "../remote-store.ts";
import type { Settlement } from "../settlements.ts";
import { followPromises } from "./follow.ts";

/** How long the last look may take once the time is up, in milliseconds. */
const LAST_CHECK_TIMEOUT_MS = 2_000;

/** How many characters of JSON a value may have that is read with its state, at once with those of other jobs. */
const MAX_VALUE = 40_000;

interface AwaitOptions {
  /** Milliseconds. */
  timeout: number;
  /** Aborts the wait when the caller goes away. */
  signal: AbortSignal;
  /**
   * Called once for each name whose promise has settled, and for each without one. The value of a promise is left out if there is no
   * room to read it: see {@link DurablePromise.omitted}. `undecryptable`: in place of a promise that cannot be decrypted, where
   * several names are awaited.
   */
  onSettled(name: string, promise: DurablePromise | undefined, undecryptable?: PromiseRecord): void;
  /** How long the connection may be silent before the promises are read, in milliseconds. Default: 30 s. */
  maxSilenceMs?: number;
}

/**
 * Waits until every promise in `names` has settled, the time is up or the caller is gone. Returns the names whose promises were
 * still pending at the last look. Settlements of all names are pushed over one SSE connection; see {@link followPromises} for when
 * the promises are read instead.
 *
 * @throws {ResonateUnavailable} when no request reaches the server, or it refuses them
 */
export async function awaitSettled(
  store: RemoteStore,
  names: readonly string[],
  { timeout, signal: caller, onSettled, maxSilenceMs }: AwaitOptions,
): Promise<string[]> {
  const pending = new Set(names);
  /** Ends the wait early: all have settled, or further requests are pointless. */
  const stopped = new AbortController();
  const signal = AbortSignal.any([caller, stopped.signal, AbortSignal.timeout(timeout)]);

  const settle = (name: string, promise: DurablePromise | undefined, undecryptable?: PromiseRecord) => {
    if ((promise ?? undecryptable)?.state === "pending" || !pending.delete(name)) return;
    onSettled(name, promise, undecryptable);
    if (pending.size === 0) stopped.abort();
  };
  let hasAnswered = false;
  let failure: unknown;
  // An isolate has no room for a hundred large results at once.
  const room = new ReadRoom();
  const isBounded = () => store.client.readsMany() === true;
  const ask = async (read: (name: string, maxValue?: number) => Promise<DurablePromise | undefined>) => {
    const cut = new Map<string, DurablePromise>();
    const readOne = async (name: string, maxValue?: number) => {
      const { promise, undecryptable } = await resultOf(read(name, maxValue), names.length > 1);
      hasAnswered = true;
      if (promise?.omitted !== undefined) cut.set(name, promise);
      else settle(name, promise, undecryptable);
      return promise?.characters ?? 0;
    };
    const readShort = (name: string) => readOne(name, MAX_VALUE);
    await room.read([...pending], readShort, (characters) => characters, { isBinding: false, isBounded });
    const large = [...cut];
    const whole = await room.read(
      large,
      ([name]) => readOne(name),
      (characters) => characters,
    );
    for (const [name, promise] of large.slice(whole.length)) settle(name, promise);
    failure = undefined;
  };
  const check = async (channel: Channel | undefined) => {
    if (channel) return ask((name, maxValue) => store.listen(name, channel, signal, maxValue));
    try {
      await ask((name, maxValue) => store.get(name, signal, maxValue));
    } catch (error) {
      // A call that the end of the wait cut short says nothing about the server.
      if (signal.aborted) return;
      failure = error;
      if (!hasAnswered || error instanceof ResonateRefused) stopped.abort();
    }
  };

  const charactersOf = (promise: DurablePromise | undefined) => promise?.characters ?? 0;
  const readPushed = async (name: string) => {
    const promise = await store.get(name, signal, room.isFull ? MAX_VALUE : undefined);
    settle(name, promise);
    return promise;
  };
  const onNews = async ({ name, isChild, promise }: Settlement) => {
    if (isChild || !pending.has(name)) return;
    if (promise) settle(name, promise);
    // A promise that is too large to be pushed is read, if there is room.
    else await room.read([name], readPushed, charactersOf, { isBinding: false });
  };
  const open = store.open.bind(store, names);
  await followPromises({ open, check, onNews, ...(maxSilenceMs !== undefined && { maxSilenceMs }) }, signal);
  if (pending.size === 0 || caller.aborted) return [...pending];
  if (!stopped.signal.aborted) {
    const last = AbortSignal.any([caller, AbortSignal.timeout(LAST_CHECK_TIMEOUT_MS)]);
    try {
      await ask((name, maxValue) => store.get(name, last, maxValue));
    } catch (error) {
      // A server that answered before and is slow now does not fail the wait.
      if (!hasAnswered) failure = error;
    }
  }
  if (failure !== undefined && pending.size > 0 && !caller.aborted) throw failure;
  return [...pending];
}

/** What a read has found. One of `several` promises that cannot be decrypted does not fail the others. */
async function resultOf(
  reading: Promise<DurablePromise | undefined>,
  several: boolean,
): Promise<{ promise: DurablePromise | undefined; undecryptable?: PromiseRecord }> {
  try {
    return { promise: await reading };
  } catch (error) {
    const undecryptable = several ? undecryptableIn(error) : undefined;
    if (!undecryptable) throw error;
    return { promise: undefined, undecryptable };
  }
}
