import { limit } from "../../functions/http/variables.ts";

export const quotaVariables = {
  /** The jobs of each length (up to an hour, a day, 30 days, a year) that a caller may start in that time; 0 for any number. */
  MAX_JOBS: limit.exactOptional(),
  /** How many bytes may be stored of a caller's jobs; 0 for any number. */
  MAX_STORED_BYTES: limit.exactOptional(),
};

/** The defaults: with authentication, and without it, when all callers count as one, whom low limits would keep from working. */
export const QUOTAS = {
  ofEach: { MAX_JOBS: 1_000, MAX_STORED_BYTES: 500_000_000 },
  ofAll: { MAX_JOBS: 0, MAX_STORED_BYTES: 0 },
};
