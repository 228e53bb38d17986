import { type Logger, pino } from "pino";

export type { Logger } from "pino";

/** Logs one JSON object a line to stdout; the level is a word. */
export function createLogger(level: string): Logger {
  return pino({
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  });
}
