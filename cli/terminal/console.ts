/** The launcher's output: permanent lines and, on a terminal, a changing line below them for each running job. */
import { stripVTControlCharacters } from "node:util";
import { type Detail, duration, entryText, type LogEntry, lineText, mark, parse, plain, withTime } from "./report.ts";
import { parentOf, RunningJobs } from "./running-jobs.ts";

/** How often changing lines are rewritten, because they show durations. */
const REFRESH_INTERVAL_MS = 500;
/** How long log lines are collected before the changing lines are rewritten. */
const COLLECTION_MS = 50;
/** How often running jobs are polled, because no log line reports that a sleeping job was cancelled. */
const POLL_INTERVAL_MS = 2_000;
/** The largest number of jobs in one poll: more of them take turns. */
const MAX_JOBS_PER_POLL = 20;
/** The largest number of failure reasons that are remembered as printed. */
const MAX_REASONS = 10_000;

interface ConsoleOptions {
  detail?: Detail;
  /** Whether lines never change in place. */
  plain?: boolean;
  output?: Output;
}

/** Resolves with undefined while a job runs, then with an object. `word` is the outcome, if no worker reports it. */
export type EndedJob = (job: string) => Promise<{ word?: string } | undefined>;

export class Console {
  readonly #out: Output;
  readonly #detail: Detail;
  readonly #screen: Screen | undefined;
  readonly #jobs: RunningJobs;
  /** The reasons of failures of child jobs that were printed. */
  readonly #reasons = new Set<string>();
  readonly #timers: NodeJS.Timeout[] = [];
  /** How many of the running jobs have had their turn in polls. */
  #pollOffset = 0;
  #refreshTimer: NodeJS.Timeout | undefined;
  #linkTo: (job: string) => string | undefined = () => undefined;
  #isClosed = false;

  constructor({ detail = "news", plain = false, output = process.stdout }: ConsoleOptions = {}) {
    this.#out = output;
    this.#detail = detail;
    this.#screen = !plain && canChange(output) ? new Screen(output) : undefined;
    this.#jobs = new RunningJobs((job) => this.#linkTo(job));
  }

  /** Starts to show jobs. `linkTo` returns the page on which a job's questions are answered. */
  follow(hasEnded: EndedJob, linkTo?: (job: string) => string): void {
    if (linkTo) this.#linkTo = linkTo;
    if (this.#screen) this.#timers.push(setInterval(() => this.#refresh(), REFRESH_INTERVAL_MS).unref());
    let isPolling = false;
    const poll = async () => {
      if (isPolling) return;
      isPolling = true;
      await this.#poll(hasEnded).catch(() => {}); // The supervisor reports a server that is down.
      isPolling = false;
    };
    this.#timers.push(setInterval(poll, POLL_INTERVAL_MS).unref());
  }

  /** Writes a permanent line with the time of day. */
  say(text: string): void {
    this.print(withTime(text));
  }

  print(text: string): void {
    if (this.#screen) this.#screen.show(this.#jobLines(), [text]);
    else this.#out.write(`${text}\n`);
  }

  /** Processes an output line of a service. */
  onLine(service: string, line: string, stream: "stdout" | "stderr"): void {
    const entry = parse(line);
    const text = entry
      ? entryText(service, entry, this.#detail, this.#linkTo)
      : lineText(service, line, stream, this.#detail);
    if (entry?.job !== undefined) this.#jobs.onEntry(entry);
    if (text !== undefined && (!entry || this.#detail === "all" || this.#isPermanent(entry))) this.say(text);
    else if (entry?.job !== undefined) this.#refreshSoon();
  }

  /** Removes the changing lines; later output is permanent. */
  close(): void {
    this.#isClosed = true;
    for (const timer of this.#timers) clearInterval(timer);
    clearTimeout(this.#refreshTimer);
    this.#screen?.show([]);
  }

  /** Whether a log line is printed as a permanent line. Others only change the line of their job. */
  #isPermanent(entry: LogEntry): boolean {
    const { msg } = entry;
    const isJobs = typeof msg === "string" && JOB_MESSAGES.has(msg);
    if (!isJobs) return true;
    const parent = parentOf(entry);
    if (parent === undefined) return this.#screen === undefined || this.#isClosed || msg === "job done";
    // The same failure of a job's children is printed once, and their outcomes are not printed.
    if (this.#screen || entry.reason === undefined) return false;
    const reason = `${parent}\n${plain(entry.reason)}`;
    if (this.#reasons.has(reason)) return false;
    if (this.#reasons.size < MAX_REASONS) this.#reasons.add(reason);
    return true;
  }

  async #poll(hasEnded: EndedJob): Promise<void> {
    const { names } = this.#jobs;
    const from = this.#pollOffset < names.length ? this.#pollOffset : 0;
    this.#pollOffset = from + MAX_JOBS_PER_POLL;
    for (const job of names.slice(from, this.#pollOffset)) {
      const end = await hasEnded(job);
      if (!end || this.#isClosed) continue;
      const took = this.#jobs.end(job);
      if (end.word !== undefined && took !== undefined) this.say(`${mark("red", end.word)} ${job} (${duration(took)})`);
    }
  }

  #refreshSoon(): void {
    this.#refreshTimer ??= setTimeout(() => {
      this.#refreshTimer = undefined;
      this.#refresh();
    }, COLLECTION_MS).unref();
  }

  #refresh(): void {
    this.#screen?.show(this.#jobLines());
  }

  #jobLines(): string[] {
    return this.#screen && !this.#isClosed ? this.#jobs.lines(this.#screen.size) : [];
  }
}

/** The messages of the worker's log about jobs. */
const JOB_MESSAGES = new Set(["job started", "job progress", "attempt failed", "job blocked", "job done"]);

type Output = NodeJS.WritableStream & { isTTY?: boolean; columns?: number; rows?: number };

/** Makes the terminal cut long lines instead of wrapping them: a wide character takes two columns. */
const LINE_WRAPPING = { off: "\u001b[?7l", on: "\u001b[?7h" };

/** Whether written lines can still be changed. */
const canChange = ({ isTTY }: Output): boolean => isTTY === true && process.env.TERM !== "dumb" && !process.env.CI;

/** A terminal whose last lines change in place, below the permanent ones. */
class Screen {
  readonly #out: Output;
  /** The lines that change. */
  #changingLines: readonly string[] = [];

  constructor(out: Output) {
    this.#out = out;
    // At another width, the same lines take another number of rows.
    out.on("resize", () => this.show(this.#changingLines));
  }

  get size(): { columns: number; rows: number } {
    return { columns: this.#out.columns || 80, rows: this.#out.rows || 24 };
  }

  /** Writes permanent lines, and below them the changing lines in place of the previous ones. */
  show(changingLines: readonly string[], permanentLines: readonly string[] = []): void {
    if (changingLines.length + permanentLines.length + this.#changingLines.length === 0) return;
    const rows = this.#changingLines.reduce((rows, line) => rows + this.#rowsOf(line), 0);
    // A single write avoids flicker. The codes move up, to the left, and clear everything below.
    const clear = rows > 0 ? `\u001b[${rows}A\r\u001b[J` : "";
    const end = (line: string) => `${line}\n`;
    const changes =
      changingLines.length > 0 ? `${LINE_WRAPPING.off}${changingLines.map(end).join("")}${LINE_WRAPPING.on}` : "";
    this.#out.write(clear + permanentLines.map(end).join("") + changes);
    this.#changingLines = changingLines;
  }

  /** The number of rows that a line takes: more than one if the terminal has become narrower. */
  #rowsOf(line: string): number {
    return Math.max(1, Math.ceil([...stripVTControlCharacters(line)].length / this.size.columns));
  }
}
