import { binding, limit } from "../../functions/http/variables.ts";
import type { RateLimiterBinding } from "./rate-limit.ts";

export const rateLimitVariables = {
  /** The jobs that a caller's requests may touch in a minute; 0 for any number. If `RATE_LIMITER` is bound, that decides instead. */
  RATE_LIMIT: limit.exactOptional(),
  RATE_LIMITER: binding<RateLimiterBinding>(),
};

/** The defaults: with authentication, and without it, when all callers count as one, whom low limits would keep from working. */
export const RATE_LIMITS = { ofEach: { RATE_LIMIT: 600 }, ofAll: { RATE_LIMIT: 6_000 } };
