/**
 * Calls that become jobs only if they do not end at once: where the edge reaches its one worker, as with `wrap`. A call without
 * a name cannot be asked for again, so its answer needs no promise; one that goes on gets it, and its job takes the call over.
 */
import type { CallArgs, Sent } from "./call-job.ts";

/** Where a worker takes such calls. */
export interface Worker {
  url: string;
  token: string;
}

/** What has become of a call: its answer; or how it was sent, where it goes on. */
export interface Told {
  answer?: Record<string, unknown>;
  /** The last progress that it has reported. */
  progress?: readonly [done: number, total?: number | undefined, message?: string | undefined];
  sent?: Sent;
}

/** The header of the answer that says how a call is being sent: before it is sent, where it must not be sent again. */
export const SENT = "x-sent";

/** Has the worker make a call; undefined where it was not sent. `job`: the name that its job would have, in logs. */
export async function callAtOnce(worker: Worker, job: string, args: CallArgs): Promise<Told | undefined> {
  const response = await post(worker, { job, args });
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

/** Has the worker cancel a call that goes on: its job may be cancelled before the worker has it. */
export async function cancelCall(worker: Worker, job: string): Promise<void> {
  await (await post(worker, { job }))?.body?.cancel();
}

function post({ url, token }: Worker, what: object): Promise<Response | undefined> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return fetch(url, { method: "POST", headers, body: JSON.stringify(what) }).catch(() => undefined);
}
