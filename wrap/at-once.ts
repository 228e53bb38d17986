/**
 * Calls that become jobs only if they do not end at once. The edge must reach its only worker directly, as with `wrap`. A call
 * without a name cannot be requested again, so its answer needs no promise. A call that goes on becomes a job, which takes it over.
 */
import type { CallArgs, Sent } from "./call-job.ts";

/** The endpoint at which a worker takes such calls. */
export interface Worker {
  url: string;
  token: string;
}

/** The state of a call: its answer if it has ended, or how it was sent if it goes on. */
export interface Told {
  answer?: Record<string, unknown>;
  /** The last progress that it has reported. */
  progress?: { done: number; total?: number | undefined; message?: string | undefined };
  sent?: Sent;
}

/** How long a worker may take, in milliseconds. It answers sooner, unless it hangs. */
const PATIENCE = 2_000;

/** The response header that says how a call is sent. It arrives before the call is sent if the call must not be sent again. */
export const SENT = "x-sent";

/** Has the worker make a call; undefined if it was not sent. `job`: the name that the call's job would have, as in logs. */
export async function callAtOnce(worker: Worker, job: string, args: CallArgs): Promise<Told | undefined> {
  // A worker that hangs may read this when its job has made the call. Its answer needs some of the time.
  const response = await post(worker, { job, args, until: Date.now() + PATIENCE / 2 });
  const sent = response?.headers.get(SENT);
  if (!response?.ok || !sent) {
    await response?.body?.cancel();
    return undefined;
  }
  const told: Told | undefined = await response.json().then(
    (told) => told as Told,
    () => undefined,
  );
  return told?.answer ? told : { sent: JSON.parse(sent) };
}

/** Has the worker cancel a call that goes on, because its job may be cancelled before the worker gets the job. */
export async function cancelCall(worker: Worker, job: string): Promise<void> {
  await (await post(worker, { job }))?.body?.cancel();
}

function post({ url, token }: Worker, what: object): Promise<Response | undefined> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const signal = AbortSignal.timeout(PATIENCE);
  return fetch(url, { method: "POST", headers, body: JSON.stringify(what), signal }).catch(() => undefined);
}
