import type { LineLog } from "../../core/jobs/index.ts";

const LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];

/** Logs one JSON object per line, as a worker does. Lines below `level` are dropped. */
export function lineLog(level = "info", bound: object = {}): LineLog {
  const minLevel = LEVELS.indexOf(level);
  const write = (word: "debug" | "info" | "warn" | "error") => (first: object | string, message?: string) => {
    if (LEVELS.indexOf(word) < minLevel) return;
    const line = typeof first === "string" ? { msg: first } : { ...first, msg: message };
    console[word](JSON.stringify({ level: word, time: new Date().toISOString(), ...bound, ...line }));
  };
  return {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    child: (fields) => lineLog(level, { ...bound, ...fields }),
  };
}
