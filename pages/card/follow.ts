/** Follows one job until its end: finds it, polls it and reports its states. */
import { type CallToolResult, JOB_META } from "../../core/tools/index.ts";
import { ResultTooLarge } from "../lib/read-result.ts";
import type { Host } from "./host.ts";
import { call, type Job, resultOf, wordsOf } from "./job.ts";

/** What a card shows. */
export interface CardState {
  job?: Job;
  /** Present once the job's result has been read. The value is undefined if the card does not show a result of that size. */
  result?: { value: unknown };
  notice?: string | undefined;
  /** Why the last poll failed; polling continues. */
  pollError?: string;
}

/** The pauses between polls: short at first and after an action, then growing. */
const MIN_PAUSE_MS = 1_500;
const MAX_PAUSE_MS = 10_000;
const PAUSE_GROWTH = 1.25;

export class Follower {
  /** The name of the card's tool, if the host reports it. */
  tool: string | undefined;
  readonly #host: Host;
  readonly #onChange: (state: CardState) => void;
  #state: CardState = {};
  #name: string | undefined;
  #arguments: Record<string, unknown> | undefined;
  #pause = MIN_PAUSE_MS;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isPolling = false;

  constructor(host: Host, onChange: (state: CardState) => void) {
    this.#host = host;
    this.#onChange = onChange;
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.pollNow();
    });
  }

  /** Receives the arguments of the card's call. If the call became a task, the host knows nothing else of it at first. */
  onCall(args: Record<string, unknown> | undefined): void {
    this.#arguments = args ?? {};
    if (this.#name === undefined) this.#pollLater();
  }

  onAnswer(answer: CallToolResult): void {
    const name = answer._meta?.[JOB_META];
    if (typeof name === "string") {
      this.#name = name;
      this.pollNow();
    } else if (answer.isError) this.#show({ notice: wordsOf(answer) });
    // A result without a job name is shown directly.
    else this.#show({ result: { value: answer.structuredContent ?? wordsOf(answer) } });
  }

  /** Calls a tool, then polls at once. A refusal becomes the notice. */
  async act(tool: string, args: Record<string, unknown>): Promise<void> {
    try {
      await call(this.#host, tool, args);
      this.#show({ ...this.#state, notice: undefined });
    } catch (error) {
      this.#show({ ...this.#state, notice: (error as Error).message });
    }
    this.pollNow();
  }

  pollNow(): void {
    this.#pause = MIN_PAUSE_MS;
    clearTimeout(this.#timer);
    void this.#poll();
  }

  get #isOver(): boolean {
    const { job, result } = this.#state;
    return (
      job !== undefined &&
      job.status !== "running" &&
      job.status !== "not_found" &&
      (job.status !== "complete" || !!result)
    );
  }

  #pollLater(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#poll(), this.#pause);
    this.#pause = Math.min(this.#pause * PAUSE_GROWTH, MAX_PAUSE_MS);
  }

  async #poll(): Promise<void> {
    if (this.#isPolling || this.#isOver || document.hidden) return;
    const query: Record<string, string> | "" | undefined =
      this.#name === undefined
        ? this.#arguments && this.tool && { tool: this.tool, arguments: JSON.stringify(this.#arguments) }
        : { job_name: this.#name };
    if (!query) return;
    this.#isPolling = true;
    try {
      const job = (await call(this.#host, "job_card", query)) as unknown as Job;
      // The call may not have started its job yet.
      if (job.status !== "not_found") this.#name = job.job_name;
      const { notice } = this.#state;
      const isFound = job.status !== "not_found" || query.job_name !== undefined;
      this.#show({
        ...(isFound && { job }),
        ...(notice !== undefined && { notice }),
        ...(this.#state.result && { result: this.#state.result }),
      });
      if (job.status === "complete" && !this.#state.result) {
        this.#show({ job, ...(await this.#resultOf(job)) });
      }
    } catch (error) {
      this.#show({ ...this.#state, pollError: (error as Error).message });
    } finally {
      this.#isPolling = false;
      if (!this.#isOver) this.#pollLater();
    }
  }

  async #resultOf({ job_name, view }: Job): Promise<CardState> {
    try {
      return { result: { value: await resultOf(this.#host, job_name, view) } };
    } catch (error) {
      if (!(error instanceof ResultTooLarge)) throw error;
      return { result: { value: undefined }, notice: error.message };
    }
  }

  #show(state: CardState): void {
    this.#state = state;
    this.#onChange(state);
  }
}
