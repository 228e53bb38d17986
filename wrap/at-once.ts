/**
 * Calls that become jobs only if they do not finish at once. The edge must reach its only worker directly, as with `wrap`. A call
 * without a name cannot be requested again, so its answer needs no promise. A call that continues becomes a job, which takes it over.
 */
import { parseExact } from "../core/resonate/index.ts";
import type { CallArgs, SendRecord } from "./call-job.ts";

/** The endpoint at which a worker accepts such calls. */
export interface WorkerEndpoint {
  url: string;
  token: string;
}

/** The state of a call: its answer if it has finished, or how it was sent if it continues. */
export interface CallState {
  answer?: Record<string, unknown>;
  /** The last progress that it has reported. */
  progress?: { done: number; total?: number | undefined; message?: string | undefined };
  sendRecord?: SendRecord;
}

/** How long a worker may take, in milliseconds. It answers sooner, unless it hangs. */
const WORKER_TIMEOUT_MS = 2_000;

/** The response header that says how a call is sent. It arrives before the call is sent if the call must not be sent again. */
export const SEND_RECORD_HEADER = "x-send-record";

/** Has the worker make a call; undefined if it was not sent. `job`: the name that the call's job would have, as in logs. */
export async function callAtOnce(worker: WorkerEndpoint, job: string, args: CallArgs): Promise<CallState | undefined> {
  // A worker that hangs may read this when its job has made the call. Its answer needs some of the time.
  const response = await post(worker, { job, args, until: Date.now() + WORKER_TIMEOUT_MS / 2 });
  const sendRecord = response?.headers.get(SEND_RECORD_HEADER);
  if (!response?.ok || !sendRecord) {
    await response?.body?.cancel();
    return undefined;
  }
  const state = (await response
    .text()
    .then(parseExact)
    .catch(() => undefined)) as CallState | undefined;
  return state?.answer ? state : { sendRecord: JSON.parse(sendRecord) };
}

/** Has the worker cancel a call that continues, because its job may be cancelled before the worker gets the job. */
export async function cancelCall(worker: WorkerEndpoint, job: string): Promise<void> {
  await (await post(worker, { job }))?.body?.cancel();
}

function post({ url, token }: WorkerEndpoint, body: object): Promise<Response | undefined> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const signal = AbortSignal.timeout(WORKER_TIMEOUT_MS);
  return fetch(url, { method: "POST", headers, body: JSON.stringify(body), signal }).catch(() => undefined);
}
