import { stripVTControlCharacters, styleText } from "node:util";

/** What the launcher prints of one line that a process wrote; undefined when it is not worth a user's attention. */
export function readable(service: string, line: string, stream: "stdout" | "stderr"): string | undefined {
  const entry = parse(line);
  if (!entry) return stream === "stderr" && line.trim() !== "" ? problem(service, line) : undefined;
  const job = plain(entry.job);
  switch (entry.msg) {
    case "job started":
      return `${mark("cyan", "started")} ${job}`;
    case "attempt failed": {
      const next = entry.retry_in_ms === undefined ? "" : `; next attempt in ${duration(Number(entry.retry_in_ms))}`;
      return `${mark("yellow", next ? "retrying" : "failing")} ${job}: attempt ${plain(entry.attempt)} failed: ${plain(entry.reason)}${next}`;
    }
    case "job done": {
      const took = duration(Number(entry.duration_ms));
      if (entry.outcome === "complete") return `${mark("green", "complete")} ${job} (${took})`;
      return `${mark("red", plain(entry.outcome))} ${job} (${took}): ${plain(entry.reason)}`;
    }
  }
  const serious = ["warn", "error", "fatal"].includes(String(entry.level));
  return serious
    ? problem(service, [entry.msg, message(entry.reason ?? entry.err ?? entry.error)].filter(Boolean).join(": "))
    : undefined;
}

/** The time of day in front of a line. */
export function timed(text: string, at = new Date()): string {
  return `${styleText("dim", at.toTimeString().slice(0, 8))}  ${text}`;
}

const WIDTH = "complete".length;

type Colour = "cyan" | "yellow" | "green" | "red";

/** Coloured only when standard output is a terminal, and not under NO_COLOR. */
const mark = (colour: Colour, word: string) => styleText(colour, word.padEnd(WIDTH));

const problem = (service: string, text: string) => `${mark("yellow", service)} ${plain(text)}`;

function parse(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

function message(error: unknown): unknown {
  return typeof error === "object" && error !== null && "message" in error ? error.message : error;
}

/** One line without control characters: part of the text comes from clients and from upstream. */
const plain = (value: unknown) =>
  stripVTControlCharacters(String(value))
    .replace(/\p{Cc}+/gu, " ")
    .trim();

const UNITS = [
  { name: "days", ms: 86_400_000 },
  { name: "h", ms: 3_600_000 },
  { name: "min", ms: 60_000 },
  { name: "s", ms: 1_000 },
];

/** `850 ms`, `1.2 s`, `2.5 min`, `3 h`, `12.3 days`. */
export function duration(ms: number): string {
  const unit = UNITS.find((unit) => ms >= unit.ms);
  return unit ? `${Number((ms / unit.ms).toFixed(1))} ${unit.name}` : `${Math.round(ms)} ms`;
}
