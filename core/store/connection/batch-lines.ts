/** Batches for the embedded server: several requests in one, each on its own line, answered by as many lines. */

export const LINES = "application/x-ndjson";

export const MOST_LINES = 64;
