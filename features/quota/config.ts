import { limit } from "../../functions/http/variables.ts";

export const quotaVariables = {
  /** The jobs of each length (up to an hour, a day, 30 days, a year) that a caller may start in that time; 0 for any number. */
  MAX_JOBS: limit.exactOptional(),
  /** How many bytes may be stored of a caller's jobs; 0 for any number. */
  MAX_STORED_BYTES: limit.exactOptional(),
};
