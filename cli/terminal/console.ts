/** What the launcher says: what stays, and below it on a terminal the jobs that run, each in a line that changes. */

import { type Detail, duration, type LogEntry, mark, parse, plain, raw, readable, timed } from "./report.ts";
import { RunningJobs, wholeOf } from "./running-jobs.ts";
import { canChange, type Output, Screen } from "./screen.ts";

/** How often the lines that change are written anew: they show how long something has taken. In milliseconds. */
const REFRESH = 500;
/** What is written as often in a moment as the log has lines is written once, in milliseconds. */
const MOMENT = 50;
/** How often jobs that run are asked for: one that sleeps can be cancelled unheard. In milliseconds. */
const LOOK = 2_000;
/** The most that are asked for at once. */
const MOST_ASKED = 20;
/** The most reasons that are remembered to have been said. */
const MOST_SAID = 10_000;

export interface ConsoleOptions {
  detail?: Detail;
  /** Whether every line stays. */
  plain?: boolean;
  output?: Output;
  env?: NodeJS.ProcessEnv;
}

/** Whether a job has ended: undefined while it runs, and the word for how where its worker does not say it. */
export type EndedJob = (job: string) => Promise<{ word?: string } | undefined>;

export class Console {
  readonly #out: Output;
  readonly #detail: Detail;
  readonly #screen: Screen | undefined;
  readonly #jobs: RunningJobs;
  /** Reasons that parts of a job have been said to fail for. */
  readonly #said = new Set<string>();
  readonly #timers: NodeJS.Timeout[] = [];
  #soon: NodeJS.Timeout | undefined;
  #linkTo: (job: string) => string | undefined = () => undefined;
  #isClosed = false;

  constructor({ detail = "news", plain = false, output = process.stdout, env = process.env }: ConsoleOptions = {}) {
    this.#out = output;
    this.#detail = detail;
    this.#screen = !plain && canChange(output, env) ? new Screen(output) : undefined;
    this.#jobs = new RunningJobs((job) => this.#linkTo(job));
  }

  /** From now on the jobs are shown; `hasEnded` asks how one is, `linkTo` gives the page at which its questions are answered. */
  follow(hasEnded: EndedJob, linkTo?: (job: string) => string): void {
    if (linkTo) this.#linkTo = linkTo;
    if (this.#screen) this.#timers.push(setInterval(() => this.#refresh(), REFRESH).unref());
    let isLooking = false;
    const look = async () => {
      if (isLooking) return;
      isLooking = true;
      await this.#look(hasEnded).catch(() => {}); // A server that is away is told of by others.
      isLooking = false;
    };
    this.#timers.push(setInterval(look, LOOK).unref());
  }

  /** Writes a line that stays, with the time of day. */
  say(text: string): void {
    this.print(timed(text));
  }

  /** Writes text that stays. */
  print(text: string): void {
    if (this.#screen) this.#screen.show(this.#changing(), [text]);
    else this.#out.write(`${text}\n`);
  }

  /** Takes in a line that a process wrote. */
  hear(service: string, line: string, stream: "stdout" | "stderr"): void {
    const entry = parse(line);
    const text = entry
      ? readable(service, entry, this.#detail, this.#linkTo)
      : raw(service, line, stream, this.#detail);
    if (entry?.job !== undefined) this.#jobs.hear(entry);
    if (text !== undefined && (!entry || this.#detail === "all" || this.#stays(entry))) this.say(text);
    else if (entry?.job !== undefined) this.#refreshSoon();
  }

  /** Nothing changes any more; what is written from now on stays. */
  close(): void {
    this.#isClosed = true;
    for (const timer of this.#timers) clearInterval(timer);
    clearTimeout(this.#soon);
    this.#screen?.show([]);
  }

  /** Whether a line is one by itself, rather than a part of the line of a job. */
  #stays(entry: LogEntry): boolean {
    const { msg } = entry;
    const isJobs = typeof msg === "string" && JOBS.has(msg);
    if (!isJobs) return true;
    const whole = wholeOf(entry);
    if (whole === undefined) return this.#screen === undefined || this.#isClosed || msg === "job done";
    // What parts of a job meet with is said once where it is the same, and how each of them ends not at all.
    if (this.#screen || entry.reason === undefined) return false;
    const reason = `${whole}\n${plain(entry.reason)}`;
    if (this.#said.has(reason)) return false;
    if (this.#said.size < MOST_SAID) this.#said.add(reason);
    return true;
  }

  async #look(hasEnded: EndedJob): Promise<void> {
    for (const job of this.#jobs.names.slice(0, MOST_ASKED)) {
      const ended = await hasEnded(job);
      if (!ended || this.#isClosed) continue;
      const took = this.#jobs.end(job);
      if (ended.word !== undefined && took !== undefined)
        this.say(`${mark("red", ended.word)} ${job} (${duration(took)})`);
    }
  }

  #refreshSoon(): void {
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined;
      this.#refresh();
    }, MOMENT).unref();
  }

  #refresh(): void {
    this.#screen?.show(this.#changing());
  }

  #changing(): string[] {
    return this.#screen && !this.#isClosed ? this.#jobs.lines(this.#screen.size) : [];
  }
}

/** What the worker says of jobs, by the message. */
const JOBS = new Set(["job started", "job goes on", "attempt failed", "job blocked", "job done"]);
