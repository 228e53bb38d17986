import { limit } from "../../functions/http/variables.ts";

export const streamVariables = {
  /** The streams that a caller may have open at once in one isolate; 0 for any number. */
  MAX_STREAMS: limit.exactOptional(),
};

/** The defaults: with authentication, and without it, when all callers count as one, whom low limits would keep from working. */
export const STREAM_LIMITS = { ofEach: { MAX_STREAMS: 32 }, ofAll: { MAX_STREAMS: 2_000 } };
