/** The log of a worker, and how errors are described in it. */
import type { Log } from "../author/context.ts";

/** A structured log. */
export interface LineLog {
  debug: WriteLine;
  info: WriteLine;
  warn: WriteLine;
  error: WriteLine;
  /** A log that adds these fields to each line. */
  child(fields: object): LineLog;
}

interface WriteLine {
  (fields: object, message: string): void;
  (message: string): void;
}

/** The log as a job's function and its steps get it. */
export function logOf(log: LineLog): Log {
  return {
    debug: (message, fields = {}) => log.debug(fields, message),
    info: (message, fields = {}) => log.info(fields, message),
    warn: (message, fields = {}) => log.warn(fields, message),
    error: (message, fields = {}) => log.error(fields, message),
  };
}

/** The message of an error, with the code or message of its cause. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (!(cause instanceof Error)) return error.message;
  return `${error.message} (${"code" in cause ? cause.code : cause.message})`;
}

/** The longest stack that is logged, in characters. */
const MAX_STACK_CHARACTERS = 10_000;

/** The stack of an error, for the author of the function that threw it; callers never see it. Never throws. */
export function stackOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  try {
    const { stack, cause } = error;
    const below = cause instanceof Error ? `\n  caused by ${cause.stack ?? cause.message}` : "";
    return `${stack ?? ""}${below}`.slice(0, MAX_STACK_CHARACTERS);
  } catch {
    return undefined; // a getter of the error throws
  }
}
