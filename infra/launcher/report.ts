import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters, styleText } from "node:util";

/**
 * How much is shown: what happens to jobs and what is wrong (`news`), besides what the author's code writes itself
 * (`author`), or every line (`all`).
 */
export type Detail = "news" | "author" | "all";

/** What the launcher prints of one line that a process wrote; undefined when it is not worth a user's attention. */
export function readable(
  service: string,
  line: string,
  stream: "stdout" | "stderr",
  detail: Detail = "news",
): string | undefined {
  const entry = parse(line);
  if (!entry) {
    const isShown = stream === "stderr" || detail !== "news";
    return isShown && line.trim() !== "" ? problem(service, line) : undefined;
  }
  const job = plain(entry.job);
  switch (entry.msg) {
    case "job started":
      return `${mark("cyan", "started")} ${job}`;
    case "attempt failed": {
      const next = entry.retry_in_ms === undefined ? "" : `; next attempt in ${duration(Number(entry.retry_in_ms))}`;
      return `${mark("yellow", next ? "retrying" : "failing")} ${job}: attempt ${plain(entry.attempt)} failed: ${plain(entry.reason)}${next}`;
    }
    case "job goes on":
      return `${mark("cyan", "running")} ${job}: ${plain(entry.doing)}`;
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

const WIDTH = "complete".length;
/** Below the text of a line, which begins behind the time of day and the word that marks it. */
const INDENT = " ".repeat("00:00:00  ".length + WIDTH + 1);

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

const message = (error: unknown): unknown => field(error, "message") ?? error;

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
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
