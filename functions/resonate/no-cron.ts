/**
 * Stands in for `cron-parser` in the edge's bundle (see `alias` in wrangler.toml): the Resonate client library imports
 * it for its in-memory server, which the edge never runs, and it would be a fifth of the bundle.
 */
export const CronExpressionParser = {
  parse(): never {
    throw new Error("the edge schedules nothing");
  },
};
