/** The callbacks of a stack's jobs, as outside systems use them. */
import { callbackOf, escapeName } from "../../core/engine/index.ts";
import { seedOf } from "../../core/jobs/index.ts";
import { decodeValue, type ResonateClient } from "../../core/resonate/index.ts";
import { callbackUrls } from "../../features/callbacks/callback-urls.ts";
import { findJob } from "./job-states.ts";

/** The variables with which a worker makes addresses of callbacks. */
export type CallbackVariables = Parameters<typeof callbackUrls>[0];

/** The address of a job's callback. The job need not have called `ctx.callback` yet. */
export async function callbackUrl(
  server: ResonateClient,
  variables: CallbackVariables,
  job: string,
  name: string,
): Promise<string> {
  const id = (await findJob(server, job)) ?? job;
  const promise = await server.call({ kind: "promise.get", data: { id } });
  const urlOf = callbackUrls(variables);
  if (!promise || !urlOf) throw new Error(`there is no job ${job}`);
  const { seed = seedOf(promise) } = (decodeValue(promise.param) ?? {}) as { seed?: string };
  return urlOf(callbackOf(id, escapeName(name)), seed, promise.timeoutAt);
}

/** Sends a value to a callback. @throws {Error} with the edge's answer if the edge refuses it */
export async function sendToCallback(url: string, value: unknown): Promise<void> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(value) });
  if (!response.ok) throw new Error(`the edge answered ${response.status}: ${await response.text()}`);
}
