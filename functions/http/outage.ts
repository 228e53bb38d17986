import { ResonateRefused, ResonateUnavailable } from "../../core/resonate/index.ts";
import type { EdgeLog } from "./log.ts";

/**
 * Why the Resonate server did not serve a request, in words for the client. Also logs it. Undefined for other errors. `advice`:
 * what the client should do, where a repeat is not safe.
 */
export function outageIn(
  error: unknown,
  log: EdgeLog,
  signal?: AbortSignal,
  advice = "Repeat the same call later: that is safe, and never starts a job twice.",
): string | undefined {
  if (error instanceof ResonateRefused) {
    log.error("resonate refused", { reason: error.message });
    return `The Resonate server, which keeps the jobs, refuses this: ${error.message}. No job is lost. Repeating it does not help until the operator of this server has looked into it.`;
  }
  if (error instanceof ResonateUnavailable) {
    if (!signal?.aborted) log.warn("resonate unavailable", { reason: error.message });
    return `The Resonate server, which keeps the jobs, is unavailable: ${error.message}. No job is lost. ${advice}`;
  }
  return undefined;
}
