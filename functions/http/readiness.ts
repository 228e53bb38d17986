import type { ResonateClient } from "../../core/resonate/index.ts";
import type { RouteHandler } from "../../core/tools/index.ts";
import { SharedValue } from "./shared-value.ts";

/** How long the readiness of the Resonate server is cached, in milliseconds. */
const CACHE_MS = { freshForMs: 2_000, failureForMs: 1_000, turnForMs: 3_000 };

/** Answers whether the Resonate server is ready. `missing`: what does not work because a binding is missing. */
export function readiness(client: ResonateClient, missing: string | undefined): RouteHandler {
  const cached = new SharedValue<string | undefined>(CACHE_MS);
  return async (c) => {
    // Anybody may ask, so the Resonate server is asked only once in a while.
    const { value: reason } = await cached.get(() =>
      client.ready().then(
        () => undefined,
        (error: Error) => `Resonate: ${error.message}`,
      ),
    );
    return reason === undefined ? c.json({ status: "ready", missing }) : c.json({ status: "unavailable", reason }, 503);
  };
}
