import { binding, limit } from "../../functions/http/variables.ts";
import type { RateLimiterBinding } from "./rate-limit.ts";

export const rateLimitVariables = {
  /** The jobs that a caller's requests may touch in a minute; 0 for any number. If `RATE_LIMITER` is bound, that decides instead. */
  RATE_LIMIT: limit.exactOptional(),
  RATE_LIMITER: binding<RateLimiterBinding>(),
};
