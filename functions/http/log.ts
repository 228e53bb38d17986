/** Structured lines, collected by Workers Logs (`console` is how a Worker logs). */
import * as z from "zod";

const LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export const LogLevel = z.enum(LEVELS);
export type LogLevel = z.infer<typeof LogLevel>;

export class EdgeLog {
  readonly #least: number;

  /** Writes what is of `level` or more serious. */
  constructor(level: LogLevel) {
    this.#least = LEVELS.indexOf(level);
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

  /** An error as it is logged: what `describeError` says of it; where debugging is on, its message and whole stack. */
  describe(error: unknown): string {
    const isDebugging = this.#least <= LEVELS.indexOf("debug");
    return isDebugging && error instanceof Error ? (error.stack ?? String(error)) : describeError(error);
  }

  #write(level: "info" | "warn" | "error", message: string, fields: object): void {
    if (LEVELS.indexOf(level) < this.#least) return;
    // biome-ignore lint/suspicious/noConsole: the platform's log
    console[level](JSON.stringify({ level, time: new Date().toISOString(), msg: message, ...fields }));
  }
}

/** What kind of error it is and where it arose; its message could hold an argument or what an upstream server wrote. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const frames = error.stack?.split("\n").filter((line) => /^\s+at /.test(line)) ?? [];
  return [error.name, ...frames.slice(0, 5).map((line) => line.trim())].join(" ");
}
