/** The requests of these examples, all to one address. */
import * as z from "zod";
import { NonRetryableError, parseRetryAfter, RetryableError, SECOND, type Step } from "../../core/index.ts";

/** The variables that the worker's environment has for them. */
export const Services = z.object({ SERVICES_URL: z.string().default("http://127.0.0.1:9000") });
export type Services = z.infer<typeof Services>;

/** A `POST` if there is a body, otherwise a `GET`. If the server is busy or fails, the error makes the step retry. */
export async function call<T>(
  { env, idempotencyKey, signal }: Step<Services>,
  path: string,
  body?: object,
): Promise<T> {
  const response = await fetch(env.SERVICES_URL + path, {
    method: body ? "POST" : "GET",
    headers: { "content-type": "application/json", "idempotency-key": idempotencyKey },
    ...(body && { body: JSON.stringify(body) }),
    signal,
  });
  if (response.status === 429) {
    const retryAfter = parseRetryAfter(response.headers.get("retry-after")) ?? 30 * SECOND;
    throw new RetryableError(`${path}: asked to wait`, { retryAfter });
  }
  if (response.status >= 500) throw new Error(`${path}: it answered ${response.status}`);
  if (!response.ok) throw new NonRetryableError(`${path}: it answered ${response.status}`);
  return response.json();
}
