import { limit } from "../../functions/http/variables.ts";

export const streamVariables = {
  /** The streams that a caller may have open at once in one isolate; 0 for any number. */
  MAX_STREAMS: limit.exactOptional(),
};
