/** Several requests as one, each on a line of its own, with as many lines of answers: the embedded server takes that. */

/** The type of such a body. */
export const LINES = "application/x-ndjson";

/** The most that one may have. */
export const MOST_LINES = 64;
