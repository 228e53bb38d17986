/** Batches that the embedded server takes: several requests in one, each on its own line, with as many lines of answers. */

/** The media type of a batch. */
export const LINES = "application/x-ndjson";

/** The most lines of a batch. */
export const MOST_LINES = 64;
