import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters, styleText } from "node:util";
import { jsonOf } from "../../core/resonate/index.ts";
import { printable } from "./print.ts";

/** What is shown: job events and problems (`news`), the log lines of the author's code as well (`author`), or `all`. */
export type Detail = "news" | "author" | "all";

/** A parsed line of a JSON log. */
export type LogEntry = Record<string, unknown>;

/** A harmless message that workerd prints at each start with options for V8. */
const HARMLESS_LINE = /NOSENTRY per-isolate bootstrap compile cache/;

/** The text to print for an output line that is not JSON; undefined to skip it. */
export function lineText(
  service: string,
  line: string,
  stream: "stdout" | "stderr",
  detail: Detail,
): string | undefined {
  const isShown = detail !== "news" || (stream === "stderr" && !HARMLESS_LINE.test(line));
  return isShown && line.trim() !== "" ? problem(service, line) : undefined;
}

/** The text to print for a log line; undefined to skip it. `linkTo` returns the page for answers to a job's questions. */
export function entryText(
  service: string,
  entry: LogEntry,
  detail: Detail = "news",
  linkTo: (job: string) => string | undefined = () => undefined,
): string | undefined {
  const job = plain(entry.job);
  switch (entry.msg) {
    case "job started":
      return `${mark("cyan", "started")} ${job}`;
    case "attempt failed": {
      const next = entry.retry_in_ms === undefined ? "" : `; next attempt in ${duration(Number(entry.retry_in_ms))}`;
      return `${mark("yellow", next ? "retrying" : "failing")} ${job}: attempt ${plain(entry.attempt)} failed: ${plain(entry.reason)}${next}`;
    }
    case "wrapped server says":
      return detail === "news" ? undefined : `${mark("yellow", "server")} ${plain(entry.says)}`;
    case "job progress": {
      if (entry.doing === undefined && detail !== "all") return undefined;
      if (entry.doing === undefined) break;
      const link = entry.asks === undefined ? undefined : linkTo(job);
      const answer = link === undefined ? "" : `; answer at ${link}`;
      return `${mark("cyan", "running")} ${job}: ${plain(entry.doing)}${answer}`;
    }
    case "job blocked":
      return `${mark("yellow", "blocked")} ${job}: ${plain(entry.reason)}`;
    case "job done": {
      const took = duration(Number(entry.duration_ms));
      if (entry.outcome === "complete") return `${mark("green", "complete")} ${job} (${took})`;
      return `${mark("red", plain(entry.outcome))} ${job} (${took}): ${[plain(entry.reason), ...frames(field(entry.error, "stack"))].join("\n")}`;
    }
  }
  const isSerious = ["warn", "error", "fatal"].includes(String(entry.level));
  const isAuthors = detail === "author" && service === "worker" && entry.level === "info" && entry.job !== undefined;
  if (!isSerious && !isAuthors && detail !== "all") return undefined;
  const reason = trace(message(entry.reason ?? entry.err ?? entry.error));
  const text = [entry.job === undefined ? "" : job, plain(entry.msg), reason].filter((part) => part !== "").join(": ");
  return `${mark("yellow", service)} ${text}`;
}

/** How many frames of a stack are shown: the innermost ones of the project. */
const MAX_FRAMES = 4;
/** The engine's own files in a checkout: their frames are shown only if there are no others. */
const ENGINE_PATH = /[\s(](core|functions|server|worker)\//;

/** An error's message and, below it, its stack. */
function trace(error: unknown): string {
  if (error === undefined) return "";
  const text = String(error)
    .split("\n")
    .filter((line) => !isFrame(line));
  return [plain(text.join(" ")), ...frames(error)].join("\n");
}

/** The frames of a stack that are in the sources, without dependencies and Node. */
function frames(stack: unknown): string[] {
  const all = String(stack ?? "")
    .split("\n")
    .filter((line) => isFrame(line) && /:\d+:\d+\)?$/.test(line) && !/node_modules|\(?node:/.test(line))
    .map((line) => plain(line.replace(/file:\/\/[^\s):]+/, (url) => relative(process.cwd(), fileURLToPath(url)))));
  const own = all.filter((frame) => !ENGINE_PATH.test(frame));
  return (own.length > 0 ? own : all).slice(0, MAX_FRAMES).map((frame) => `${INDENT}${frame}`);
}

const isFrame = (line: string) => /^\s+at /.test(line);

/** Puts the time of day before a line. */
export function withTime(text: string, at = new Date()): string {
  return `${styleText("dim", at.toTimeString().slice(0, 8))}  ${text}`;
}

export const MARK_WIDTH = "complete".length;
/** The indentation of lines below a text, which follows the time of day and the marking word. */
const INDENT = " ".repeat("00:00:00  ".length + MARK_WIDTH + 1);

type Color = "cyan" | "yellow" | "green" | "red";

/** Colored only if standard output is a terminal and NO_COLOR is not set. */
export const mark = (color: Color, word: string) => styleText(color, word.padEnd(MARK_WIDTH));

const problem = (service: string, text: string) => `${mark("yellow", service)} ${plain(text)}`;

/** Parses a log line; undefined if it is not a JSON object. */
export function parse(line: string): LogEntry | undefined {
  const value = jsonOf(line);
  return typeof value === "object" && value !== null ? { ...value } : undefined;
}

const message = (error: unknown): unknown => field(error, "message") ?? error;

export function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

/** One line without control characters, because part of the text comes from clients and upstreams. */
export const plain = (value: unknown) =>
  printable(
    stripVTControlCharacters(String(value))
      .replace(/\p{Cc}+/gu, " ")
      .trim(),
  );

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

/** In at most two whole units, for durations that are still growing: `7 s`, `2 min 31 s`, `3 h`, `12 days 3 h`. */
export function wholeDuration(ms: number): string {
  const counts = UNITS.map((unit, i) => {
    const count = Math.floor((Math.max(ms, 0) % (UNITS[i - 1]?.ms ?? Number.POSITIVE_INFINITY)) / unit.ms);
    return count === 0 ? "" : `${count} ${count === 1 && unit.name === "days" ? "day" : unit.name}`;
  });
  const first = counts.findIndex(Boolean);
  const largest = counts.slice(first, first + 2).filter(Boolean);
  return first < 0 ? "0 s" : largest.join(" ");
}
