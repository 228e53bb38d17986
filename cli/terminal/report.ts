import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters, styleText } from "node:util";

/**
 * How much is shown: what happens to jobs and what is wrong (`news`), besides what the author's code writes itself
 * (`author`), or every line (`all`).
 */
export type Detail = "news" | "author" | "all";

/** A line of a log, whatever it says. */
export type LogEntry = Record<string, unknown>;

/** What the launcher prints of text that is no line of a log; undefined when it is not worth a user's attention. */
export function raw(service: string, line: string, stream: "stdout" | "stderr", detail: Detail): string | undefined {
  const isShown = stream === "stderr" || detail !== "news";
  return isShown && line.trim() !== "" ? problem(service, line) : undefined;
}

/**
 * What the launcher prints of a line of a process's log; undefined when it is not worth a user's attention. `linkTo` gives
 * the page at which a job's questions are answered.
 */
export function readable(
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
    case "job goes on": {
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

/** Frames of a stack that are shown: the innermost of the project's own. */
const FRAMES = 4;
/** Places in the engine, where it lies in the folder itself: they are shown when nothing else is. */
const ENGINE = /[\s(](core|functions|infra|worker)\//;

/** An error's message, and below it where it arose. */
function trace(error: unknown): string {
  if (error === undefined) return "";
  const text = String(error)
    .split("\n")
    .filter((line) => !isFrame(line));
  return [plain(text.join(" ")), ...frames(error)].join("\n");
}

/** Where in the sources an error arose, by its stack; dependencies and Node itself are left out. */
function frames(stack: unknown): string[] {
  const all = String(stack ?? "")
    .split("\n")
    .filter((line) => isFrame(line) && /:\d+:\d+\)?$/.test(line) && !/node_modules|\(?node:/.test(line))
    .map((line) => plain(line.replace(/file:\/\/[^\s):]+/, (url) => relative(process.cwd(), fileURLToPath(url)))));
  const own = all.filter((frame) => !ENGINE.test(frame));
  return (own.length > 0 ? own : all).slice(0, FRAMES).map((frame) => `${INDENT}${frame}`);
}

const isFrame = (line: string) => /^\s+at /.test(line);

/** The time of day in front of a line. */
export function timed(text: string, at = new Date()): string {
  return `${styleText("dim", at.toTimeString().slice(0, 8))}  ${text}`;
}

export const WIDTH = "complete".length;
/** Below the text of a line, which begins behind the time of day and the word that marks it. */
const INDENT = " ".repeat("00:00:00  ".length + WIDTH + 1);

export type Colour = "cyan" | "yellow" | "green" | "red";

/** Coloured only when standard output is a terminal, and not under NO_COLOR. */
export const mark = (colour: Colour, word: string) => styleText(colour, word.padEnd(WIDTH));

const problem = (service: string, text: string) => `${mark("yellow", service)} ${plain(text)}`;

/** A line as that of a log; undefined when it is none. */
export function parse(line: string): LogEntry | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

const message = (error: unknown): unknown => field(error, "message") ?? error;

export function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

/** One line without control characters: part of the text comes from clients and from upstream. */
export const plain = (value: unknown) =>
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

/** In whole units, two at most, for what is counted while it lasts: `7 s`, `2 min 31 s`, `3 h`, `12 days 3 h`. */
export function wholeDuration(ms: number): string {
  let left = Math.max(ms, 0);
  const counts = UNITS.map(({ name, ms }) => {
    const count = Math.floor(left / ms);
    left -= count * ms;
    return count === 0 ? undefined : `${count} ${count === 1 && name === "days" ? "day" : name}`;
  });
  const first = counts.findIndex((count) => count !== undefined);
  return first < 0
    ? "0 s"
    : counts
        .slice(first, first + 2)
        .filter(Boolean)
        .join(" ");
}
