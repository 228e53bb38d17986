/** The limits of the platform's plans. docs/deploy.md names the source. */

/** The free plan: rows, requests and GB-s a day, bytes of an object. */
export const FREE_PLAN = { rows: 100_000, requests: 100_000, duration: 13_000, size: 5e9 };

/** The most bytes of an object. */
export const MAX_OBJECT_BYTES = 10e9;
