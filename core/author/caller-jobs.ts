import type { Answer } from "../definitions/context.ts";
import type { Job } from "../definitions/job.ts";
import type { RemoteStore } from "../jobs/remote-store.ts";
import { newestGeneration, startJob } from "../jobs/starting/start.ts";
import { startedOf } from "./job-tool.ts";
import type { Jobs, Started } from "./tool.ts";

/** The jobs of the caller whom the store acts for, as a tool uses them. */
export class CallerJobs implements Jobs {
  readonly #store: RemoteStore;
  readonly #now: number;
  readonly #signal: AbortSignal;

  constructor(store: RemoteStore, now: number, signal: AbortSignal) {
    this.#store = store;
    this.#now = now;
    this.#signal = signal;
  }

  async start<Args, Result>(job: Job<Args, Result>, args: Args): Promise<Started<Args, Result>> {
    return startedOf(await startJob(this.#store, job, args, this.#now));
  }

  async find<Args, Result>(job: Job<Args, Result>, args: Args): Promise<Started<Args, Result> | undefined> {
    const base = await job.name(args);
    const first = await this.#store.get(base, this.#signal);
    return first && startedOf((await newestGeneration(this.#store, base, first)).promise);
  }

  async answer(jobName: string, question: string, answer: Answer): Promise<"answered" | "closed" | "notAsked"> {
    const promise = await this.#store.get(jobName, this.#signal);
    if (promise?.state !== "pending") return "closed";
    const { entry } = await this.#store.feeds.newest(promise, this.#signal);
    if (!entry) return "notAsked";
    const open = Object.hasOwn(entry.questions, question) ? entry.questions[question] : undefined;
    if (!open) return "closed";
    return (await this.#store.feeds.answer(open.promiseId, answer)) ? "answered" : "closed";
  }
}
