/** The jobs that run, as the worker's log tells of them, each in one line that changes. */
import { styleText } from "node:util";
import { field, type LogEntry, mark, plain, timed, WIDTH, wholeDuration } from "./report.ts";

/** What is known of a job that runs. Times are milliseconds since the epoch. */
interface Running {
  since: number;
  /** The newest that it has said of itself. */
  told: LogEntry;
  /** What its last attempt met with. */
  failure?: { step: string; attempt: number; reason: string; next: number };
  blocked?: string;
}

/** How long a bar is, in characters. */
const BAR = 16;

export class RunningJobs {
  readonly #jobs = new Map<string, Running>();
  /** What the jobs that were started by another one meet with, by that one and their own names. */
  readonly #parts = new Map<string, Map<string, string>>();
  readonly #linkTo: (job: string) => string | undefined;

  constructor(linkTo: (job: string) => string | undefined = () => undefined) {
    this.#linkTo = linkTo;
  }

  get names(): string[] {
    return [...this.#jobs.keys()];
  }

  /** Takes in what the worker says of a job; anything else changes nothing. */
  hear(entry: LogEntry, now = Date.now()): void {
    const job = plain(entry.job);
    const whole = wholeOf(entry);
    if (whole !== undefined) {
      this.#hearPart(whole, job, entry);
      return;
    }
    const known = this.#jobs.get(job) ?? { since: now, told: {} };
    const { failure: _failure, blocked: _blocked, ...well } = known;
    switch (entry.msg) {
      case "job started":
        this.#jobs.set(job, { since: now, told: entry });
        break;
      case "job goes on":
        // That a step has failed is told by its attempt.
        this.#jobs.set(
          job,
          field(entry.step, "error") === undefined ? { ...well, told: entry } : { ...known, told: entry },
        );
        break;
      case "attempt failed": {
        const [step, reason] = [plain(entry.step), plain(entry.reason)];
        const failure = { step, reason, attempt: Number(entry.attempt), next: now + Number(entry.retry_in_ms) };
        this.#jobs.set(job, { ...well, failure });
        break;
      }
      case "job blocked":
        this.#jobs.set(job, { ...well, blocked: plain(entry.reason) });
        break;
      case "job done":
        this.end(job);
        break;
    }
  }

  /** A job has ended; returns for how long it ran, in milliseconds, where it was known. */
  end(job: string, now = Date.now()): number | undefined {
    const known = this.#jobs.get(job);
    this.#jobs.delete(job);
    this.#parts.delete(job);
    return known && now - known.since;
  }

  /** A line for each, the oldest first, as many as fit. */
  lines({ columns, rows }: { columns: number; rows: number }, now = Date.now()): string[] {
    const most = Math.max(1, rows - 3);
    const all = [...this.#jobs];
    const fitting = all.length > most ? all.slice(0, most - 1) : all;
    const lines = fitting.map(([job, running]) => this.#line(job, running, columns, now));
    const rest = all.length - fitting.length;
    return rest > 0 ? [...lines, `${" ".repeat(WIDTH + 11)}and ${rest} more`] : lines;
  }

  #hearPart(whole: string, job: string, entry: LogEntry): void {
    if (!this.#jobs.has(whole)) return;
    const parts = this.#parts.get(whole) ?? new Map<string, string>();
    this.#parts.set(whole, parts);
    if (entry.msg === "attempt failed" || entry.msg === "job blocked") parts.set(job, plain(entry.reason));
    else if (field(entry.step, "error") === undefined) parts.delete(job);
  }

  #line(job: string, running: Running, columns: number, now: number): string {
    const { told, since } = running;
    const { word, colour, text } = this.#doing(job, running, now);
    const bar = barOf(told.progress);
    const age = `(${wholeDuration(now - since)})`;
    // The time of day, the word, the bar and the age, with what separates them.
    const taken = 10 + WIDTH + 1 + (bar === "" ? 0 : BAR + 1) + 1 + age.length + 1;
    const body = cut(text === "" ? job : `${job}: ${text}`, columns - taken);
    return timed(
      [mark(colour, word), ...(bar === "" ? [] : [bar]), body, styleText("dim", age)].join(" "),
      new Date(since),
    );
  }

  #doing(job: string, { told, failure, blocked }: Running, now: number) {
    const is = (word: string, colour: "cyan" | "yellow", text: string) => ({ word, colour, text });
    if (blocked !== undefined) return is("blocked", "yellow", blocked);
    const asks = Array.isArray(told.asks) ? told.asks.map(plain).join("; ") : undefined;
    if (asks !== undefined) {
      const link = this.#linkTo(job);
      return is("asks", "yellow", link === undefined ? asks : `${link} ${asks}`);
    }
    if (failure) {
      const { step, attempt, reason, next } = failure;
      const wait = next > now ? `next in ${wholeDuration(next - now + 999)}` : "trying again";
      return is("retrying", "yellow", `${step}, attempt ${attempt} failed, ${wait}: ${reason}`);
    }
    const text = [...(told.doing === undefined ? quietly(told, now) : [plain(told.doing)]), ...this.#trouble(job)].join(
      "; ",
    );
    return is("running", "cyan", text);
  }

  /** What is wrong with jobs that it started, in a few words. */
  #trouble(job: string): string[] {
    const reasons = [...(this.#parts.get(job)?.values() ?? [])];
    const [first] = reasons;
    return first === undefined
      ? []
      : [`${reasons.length} of its jobs ${reasons.length === 1 ? "tries" : "try"} again: ${first}`];
  }
}

/** The job that a job was started by, where it was one. */
export const wholeOf = ({ started_by }: LogEntry): string | undefined =>
  started_by === undefined ? undefined : plain(started_by);

/** What a job does that says nothing of it. */
function quietly({ step, sleeping_until, expected_at, awaiting }: LogEntry, now: number): string[] {
  const name = field(step, "name");
  const attempt = Number(field(step, "attempt"));
  if (name !== undefined) return [`${plain(name)}${attempt > 1 ? `, attempt ${attempt}` : ""}`];
  const until = Number(sleeping_until ?? expected_at);
  if (until > now)
    return [`until ${new Date(until).toTimeString().slice(0, 8)}, in ${wholeDuration(until - now + 999)}`];
  return awaiting === undefined ? [] : [`waits for ${awaiting === 1 ? "a job" : `${plain(awaiting)} jobs`}`];
}

/** How far a job is that knows its total; empty for any other. */
function barOf(progress: unknown): string {
  const total = Number(field(progress, "total"));
  if (!(total > 0)) return "";
  // Whole only at the end.
  const done = Math.floor(Math.min(Math.max(Number(field(progress, "done")) / total, 0), 1) * BAR);
  return styleText("cyan", "━".repeat(done)) + styleText("dim", "─".repeat(BAR - done));
}

function cut(text: string, width: number): string {
  const characters = [...text];
  return characters.length <= width ? text : `${characters.slice(0, Math.max(width - 1, 0)).join("")}…`;
}
