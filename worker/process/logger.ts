import { type Logger, pino } from "pino";

export type { Logger } from "pino";

/** Logs one JSON object per line to stdout, with the level as a word. */
export function createLogger(level: string): Logger {
  return pino({
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  });
}
