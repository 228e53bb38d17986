/** Batches that the embedded server takes: several requests in one, each on its own line, with as many lines of answers. */

export const LINES = "application/x-ndjson";

export const MOST_LINES = 64;
