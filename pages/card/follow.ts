/** Follows one job until its end: finds it, polls it and reports its states. */
import { type CallToolResult, JOB_META } from "../../core/tools/mcp.ts";
import { TooMuch } from "../lib/whole.ts";
import type { Host } from "./host.ts";
import { call, type Job, resultOf, wordsOf } from "./job.ts";

export interface Seen {
  job?: Job;
  /** Present once the job's result has been read. The value is undefined if the card does not show a result of that size. */
  result?: { value: unknown };
  notice?: string | undefined;
  /** Why the last poll failed; polling continues. */
  lost?: string;
}

/** The pauses between polls, in milliseconds: short at first and after an action, then growing. */
const PACE = { first: 1_500, growth: 1.25, most: 10_000 };

export class Follower {
  /** The name of the card's tool, if the host tells it. */
  tool: string | undefined;
  readonly #host: Host;
  readonly #tell: (seen: Seen) => void;
  #seen: Seen = {};
  #name: string | undefined;
  #arguments: Record<string, unknown> | undefined;
  #pause = PACE.first;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isLooking = false;

  constructor(host: Host, tell: (seen: Seen) => void) {
    this.#host = host;
    this.#tell = tell;
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.soon();
    });
  }

  /** Takes the arguments of the card's call. If the call became a task, the host knows nothing else of it at first. */
  called(args: Record<string, unknown> | undefined): void {
    this.#arguments = args ?? {};
    if (this.#name === undefined) this.#later();
  }

  answered(answer: CallToolResult): void {
    const name = answer._meta?.[JOB_META];
    if (typeof name === "string") {
      this.#name = name;
      this.soon();
    } else if (answer.isError) this.#show({ notice: wordsOf(answer) });
    // A result without a job name is shown directly.
    else this.#show({ result: { value: answer.structuredContent ?? wordsOf(answer) } });
  }

  /** Calls a tool, then polls at once. A refusal becomes the notice. */
  async act(tool: string, args: Record<string, unknown>): Promise<void> {
    try {
      await call(this.#host, tool, args);
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
    const known: Record<string, string> | "" | undefined =
      this.#name === undefined
        ? this.#arguments && this.tool && { tool: this.tool, arguments: JSON.stringify(this.#arguments) }
        : { job_name: this.#name };
    if (!known) return;
    this.#isLooking = true;
    try {
      const job = (await call(this.#host, "job_card", known)) as unknown as Job;
      // The call may not have started its job yet.
      if (job.status !== "not_found") this.#name = job.job_name;
      const { notice } = this.#seen;
      const isFound = job.status !== "not_found" || known.job_name !== undefined;
      this.#show({
        ...(isFound && { job }),
        ...(notice !== undefined && { notice }),
        ...(this.#seen.result && { result: this.#seen.result }),
      });
      if (job.status === "complete" && !this.#seen.result) {
        this.#show({ job, ...(await this.#resultOf(job)) });
      }
    } catch (error) {
      this.#show({ ...this.#seen, lost: (error as Error).message });
    } finally {
      this.#isLooking = false;
      if (!this.#isOver) this.#later();
    }
  }

  async #resultOf({ job_name, view }: Job): Promise<Seen> {
    try {
      return { result: { value: await resultOf(this.#host, job_name, view) } };
    } catch (error) {
      if (!(error instanceof TooMuch)) throw error;
      return { result: { value: undefined }, notice: error.message };
    }
  }

  #show(seen: Seen): void {
    this.#seen = seen;
    this.#tell(seen);
  }
}
