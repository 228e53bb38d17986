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

/** Why something failed, in a few words: the error's message, with the code or message of its cause. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return `${error.message} (${"code" in cause ? cause.code : cause.message})`;
}

/** The longest stack that is logged, in characters. */
const MAX_STACK = 10_000;

/** An error for whoever wrote the function that threw it: with its stack, which callers never see. Never throws itself. */
export function thrown(error: Error): { stack: string } | undefined {
  try {
    const { stack, cause } = error;
    const below = cause instanceof Error ? `\n  caused by ${cause.stack ?? cause.message}` : "";
    return { stack: `${stack ?? ""}${below}`.slice(0, MAX_STACK) };
  } catch {
    return undefined; // a getter that throws in turn
  }
}
