/** Follows one job until it has ended: finds it, looks at it now and then, and tells what it sees. */
import type { App } from "@modelcontextprotocol/ext-apps";
import { type About, type CallAnswer, call, type Job, resultOf, wordsOf } from "./job.ts";

export interface Seen {
  job?: Job;
  /** Present once the job is complete and its result has been read. */
  result?: { value: unknown };
  /** What stands in the way, in words. */
  notice?: string | undefined;
  /** Whether the last look failed; it goes on looking. */
  isLost?: boolean;
}

/** Between looks, in milliseconds: soon at first and after somebody has acted, then ever more seldom. */
const PACE = { first: 1_500, growth: 1.25, most: 10_000 };

export class Follower {
  readonly #app: App;
  readonly #about: About;
  readonly #tell: (seen: Seen) => void;
  #seen: Seen = {};
  #name: string | undefined;
  #arguments: Record<string, unknown> | undefined;
  #pause = PACE.first;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isLooking = false;

  constructor(app: App, about: About, tell: (seen: Seen) => void) {
    this.#app = app;
    this.#about = about;
    this.#tell = tell;
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.soon();
    });
  }

  /** The call that the card belongs to, by its arguments: a host that was given a task knows no more at first. */
  called(args: Record<string, unknown> | undefined): void {
    this.#arguments = args ?? {};
    if (this.#name === undefined) this.#later();
  }

  /** What the call was answered with. */
  answered(answer: CallAnswer): void {
    const content = answer.structuredContent as Record<string, unknown> | undefined;
    const name = content?.job_name ?? content?.promise_id;
    if (typeof name === "string") {
      this.#name = name;
      this.soon();
    } else if (answer.isError) this.#show({ notice: wordsOf(answer) });
    // The answer of a tool whose answers are its own.
    else this.#show({ result: { value: content ?? wordsOf(answer) } });
  }

  /** Does something to the job, then looks at once. Returns what was refused, in words. */
  async act(tool: string, args: Record<string, unknown>): Promise<void> {
    try {
      await call(this.#app, tool, args);
      this.#show({ ...this.#seen, notice: undefined });
    } catch (error) {
      this.#show({ ...this.#seen, notice: (error as Error).message });
    }
    this.soon();
  }

  soon(): void {
    this.#pause = PACE.first;
    clearTimeout(this.#timer);
    void this.#look();
  }

  get #isOver(): boolean {
    const { job, result } = this.#seen;
    return (
      job !== undefined &&
      job.status !== "running" &&
      job.status !== "not_found" &&
      (job.status !== "complete" || !!result)
    );
  }

  #later(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#look(), this.#pause);
    this.#pause = Math.min(this.#pause * PACE.growth, PACE.most);
  }

  async #look(): Promise<void> {
    if (this.#isLooking || this.#isOver || document.hidden) return;
    const known =
      this.#name === undefined
        ? this.#arguments && { tool: this.#about.tool, arguments: JSON.stringify(this.#arguments) }
        : { job_name: this.#name };
    if (!known) return;
    this.#isLooking = true;
    try {
      const job = (await call(this.#app, "job_card", known)) as unknown as Job;
      // A call may be on its way still.
      if (job.status !== "not_found") this.#name = job.job_name;
      const { notice } = this.#seen;
      const isFound = job.status !== "not_found" || known.job_name !== undefined;
      this.#show({
        ...(isFound && { job }),
        ...(notice !== undefined && { notice }),
        ...(this.#seen.result && { result: this.#seen.result }),
      });
      if (job.status === "complete" && !this.#seen.result) {
        const value = await resultOf(this.#app, job.job_name, this.#about.view);
        this.#show({ job, result: { value } });
      }
    } catch (error) {
      this.#show({ ...this.#seen, isLost: true, notice: (error as Error).message });
    } finally {
      this.#isLooking = false;
      if (!this.#isOver) this.#later();
    }
  }

  #show(seen: Seen): void {
    this.#seen = seen;
    this.#tell(seen);
  }
}
