/** Structured log lines, collected by Workers Logs (`console` is how a Worker logs). */
import * as z from "zod";

const LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export const LogLevel = z.enum(LEVELS);
export type LogLevel = z.infer<typeof LogLevel>;

export class EdgeLog {
  /** Whether lines of the level info are written. */
  readonly isInformative: boolean;
  readonly #level: number;

  constructor(level: LogLevel) {
    this.#level = LEVELS.indexOf(level);
    this.isInformative = this.#level <= LEVELS.indexOf("info");
  }

  info(message: string, fields: object): void {
    this.#write("info", message, fields);
  }

  warn(message: string, fields: object): void {
    this.#write("warn", message, fields);
  }

  error(message: string, fields: object): void {
    this.#write("error", message, fields);
  }

  /** An error in the form of {@link describeError}; at the levels debug and trace, its message and whole stack. */
  describe(error: unknown): string {
    const isDebugging = this.#level <= LEVELS.indexOf("debug");
    return isDebugging && error instanceof Error ? (error.stack ?? String(error)) : describeError(error);
  }

  #write(level: "info" | "warn" | "error", message: string, fields: object): void {
    if (LEVELS.indexOf(level) < this.#level) return;
    // oxlint-disable-next-line no-console -- the platform's log
    console[level](JSON.stringify({ level, time: new Date().toISOString(), msg: message, ...fields }));
  }
}

/** An error's name and where it arose. Its message is left out: it could hold an argument or an upstream server's text. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const frames = error.stack?.split("\n").filter((line) => /^\s+at /.test(line)) ?? [];
  return [error.name, ...frames.slice(0, 5).map((line) => line.trim())].join(" ");
}

/** How much of a caller's text is logged or shown, in characters. */
const MAX_PRINTED_CHARACTERS = 200;

/** A caller's text, shortened, on one line; invisible characters and those that would overwrite others become escapes. */
export function printable(text: string): string {
  const start = text.slice(0, MAX_PRINTED_CHARACTERS).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) => {
    return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
  return text.length > MAX_PRINTED_CHARACTERS ? `${start}… (${text.length} characters)` : start;
}
