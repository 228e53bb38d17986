/** The running jobs, according to the worker's log. Each has one changing line. */
import { styleText } from "node:util";
import { field, type LogEntry, MARK_WIDTH, mark, plain, wholeDuration, withTime } from "./report.ts";

/** A running job. Times are milliseconds since the epoch. */
interface RunningJob {
  since: number;
  /** The last log line with what the job does. */
  report: LogEntry;
  failure?: { step: string; attempt: number; reason: string; next: number };
  blocked?: string;
}

/** The width of a progress bar. */
const BAR_CHARACTERS = 16;

export class RunningJobs {
  readonly #jobs = new Map<string, RunningJob>();
  /** The failure reasons of child jobs, by the name of their parent and their own name. */
  readonly #children = new Map<string, Map<string, string>>();
  readonly #linkTo: (job: string) => string | undefined;

  constructor(linkTo: (job: string) => string | undefined) {
    this.#linkTo = linkTo;
  }

  get names(): string[] {
    return [...this.#jobs.keys()];
  }

  /** Processes a log line about a job; ignores other messages. */
  onEntry(entry: LogEntry): void {
    const now = Date.now();
    const job = plain(entry.job);
    const parent = parentOf(entry);
    if (parent !== undefined) {
      this.#onChildEntry(parent, job, entry);
      return;
    }
    const state = this.#jobs.get(job) ?? { since: now, report: {} };
    const { failure: _failure, blocked: _blocked, ...well } = state;
    switch (entry.msg) {
      case "job started":
        this.#jobs.set(job, { since: now, report: entry });
        break;
      case "job progress":
        // The entry "attempt failed" has shown a failed step already.
        this.#jobs.set(
          job,
          field(entry.step, "error") === undefined ? { ...well, report: entry } : { ...state, report: entry },
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

  /** Removes a job that has ended; returns how long it ran in milliseconds, if it was known. */
  end(job: string): number | undefined {
    const state = this.#jobs.get(job);
    this.#jobs.delete(job);
    this.#children.delete(job);
    return state && Date.now() - state.since;
  }

  /** One line per job, the oldest first, as many as fit. */
  lines({ columns, rows }: { columns: number; rows: number }): string[] {
    const now = Date.now();
    const maxLines = Math.max(1, rows - 3);
    const all = [...this.#jobs];
    const first = all.length > maxLines ? all.slice(0, maxLines - 1) : all;
    const lines = first.map(([job, state]) => this.#line(job, state, columns, now));
    const rest = all.length - first.length;
    return rest > 0 ? [...lines, `${" ".repeat(MARK_WIDTH + 11)}and ${rest} more`] : lines;
  }

  #onChildEntry(parent: string, job: string, entry: LogEntry): void {
    if (!this.#jobs.has(parent)) return;
    const children = this.#children.get(parent) ?? new Map<string, string>();
    this.#children.set(parent, children);
    if (entry.msg === "attempt failed" || entry.msg === "job blocked") children.set(job, plain(entry.reason));
    else if (field(entry.step, "error") === undefined) children.delete(job);
  }

  #line(job: string, state: RunningJob, columns: number, now: number): string {
    const { report, since } = state;
    const { word, color, text } = this.#doing(job, state, now);
    const bar = barOf(report.progress);
    const age = `(${wholeDuration(now - since)})`;
    // The widths of the time of day, the word, the bar and the age, with separators.
    const usedColumns = 10 + MARK_WIDTH + 1 + (bar === "" ? 0 : BAR_CHARACTERS + 1) + 1 + age.length + 1;
    const body = cut(text === "" ? job : `${job}: ${text}`, columns - usedColumns);
    return withTime(
      [mark(color, word), ...(bar === "" ? [] : [bar]), body, styleText("dim", age)].join(" "),
      new Date(since),
    );
  }

  #doing(job: string, { report, failure, blocked }: RunningJob, now: number) {
    const is = (word: string, color: "cyan" | "yellow", text: string) => ({ word, color, text });
    if (blocked !== undefined) return is("blocked", "yellow", blocked);
    const asks = Array.isArray(report.asks) ? report.asks.map(plain).join("; ") : undefined;
    if (asks !== undefined) {
      const link = this.#linkTo(job);
      return is("asks", "yellow", link === undefined ? asks : `${link} ${asks}`);
    }
    if (failure) {
      const { step, attempt, reason, next } = failure;
      const wait = next > now ? `next in ${wholeDuration(next - now + 999)}` : "trying again";
      return is("retrying", "yellow", `${step}, attempt ${attempt} failed, ${wait}: ${reason}`);
    }
    const text = [
      ...(report.doing === undefined ? activityOf(report, now) : [plain(report.doing)]),
      ...this.#trouble(job),
    ].join("; ");
    return is("running", "cyan", text);
  }

  /** Describes the failures of a job's child jobs. */
  #trouble(job: string): string[] {
    const reasons = [...(this.#children.get(job)?.values() ?? [])];
    const [first] = reasons;
    return first === undefined
      ? []
      : [`${reasons.length} of its jobs ${reasons.length === 1 ? "tries" : "try"} again: ${first}`];
  }
}

export const parentOf = ({ started_by }: LogEntry): string | undefined =>
  started_by === undefined ? undefined : plain(started_by);

/** Describes a job that reports no progress, by its step, sleep or awaited jobs. */
function activityOf({ step, sleeping_until, expected_at, awaiting }: LogEntry, now: number): string[] {
  const name = field(step, "name");
  const attempt = Number(field(step, "attempt"));
  if (name !== undefined) return [`${plain(name)}${attempt > 1 ? `, attempt ${attempt}` : ""}`];
  const until = Number(sleeping_until ?? expected_at);
  if (until > now)
    return [`until ${new Date(until).toTimeString().slice(0, 8)}, in ${wholeDuration(until - now + 999)}`];
  return awaiting === undefined ? [] : [`waits for ${awaiting === 1 ? "a job" : `${plain(awaiting)} jobs`}`];
}

/** The progress bar of a job that knows its total; otherwise empty. */
function barOf(progress: unknown): string {
  const total = Number(field(progress, "total"));
  if (!(total > 0)) return "";
  // Rounded down, so that the bar is full only at the end.
  const done = Math.floor(Math.min(Math.max(Number(field(progress, "done")) / total, 0), 1) * BAR_CHARACTERS);
  return styleText("cyan", "━".repeat(done)) + styleText("dim", "─".repeat(BAR_CHARACTERS - done));
}

function cut(text: string, width: number): string {
  const characters = [...text];
  return characters.length <= width ? text : `${characters.slice(0, Math.max(width - 1, 0)).join("")}…`;
}
