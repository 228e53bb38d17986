/** How a call waits for a job. */
import {
  activityOf,
  type CurrentJob,
  countOf,
  currentJobOf,
  howToAnswer,
  inputRequestsOf,
  lineOf,
  withoutFeed,
} from "../jobs/current-job.ts";
import type { DurablePromise } from "../jobs/durable-promise.ts";
import { awaitSettled } from "../jobs/waiting/waiting.ts";
import { pause } from "../resonate/pacing/backoff.ts";
import { withMedia } from "./answers.ts";
import { presentJob, structured } from "./present.ts";
import type { CallContext } from "./tool.ts";

/** How long a call with progress waits before it answers with its job's name, in milliseconds: less than clients wait. */
const MAX_WAIT_WITH_PROGRESS_MS = 45_000;

/** Milliseconds between progress notifications: some clients give up after five seconds of silence. */
export const PROGRESS_INTERVAL_MS = 2_500;
/** The pause before the first look for a job's own reports, in milliseconds. Later pauses are a share of the time waited. */
const FIRST_RELAY_PAUSE_MS = 200;
const RELAY_PAUSE_SHARE = 0.1;

interface WaitOptions {
  name?: string;
  consent?: readonly string[];
  /** Whether the job's own reports of progress are passed on soon and unchanged, and no other reports. */
  relaysProgress?: boolean;
  /** Called with the job's result before the answer. */
  onResult?(result: unknown): void;
}

/** Reports the progress of a job to the client whose call waits for it, and sees whether the job asks a question. */
class ProgressRelay {
  /** Aborted once the job asks a question. */
  readonly #questions = new AbortController();
  readonly #stopped = new AbortController();
  readonly #context: CallContext;
  readonly #ticker: ReturnType<typeof setInterval> | undefined;
  #current: CurrentJob | undefined;
  #lastRelayed = "";
  #relaying: Promise<void> | undefined;

  constructor(context: CallContext) {
    this.#context = context;
    if (context.reportProgress || context.asks) this.#ticker = setInterval(() => this.#report(), PROGRESS_INTERVAL_MS);
  }

  /** Aborted once the job asks a question, or the caller is gone. */
  get signal(): AbortSignal {
    return AbortSignal.any([this.#context.signal, this.#questions.signal]);
  }

  /** The job has started. With `relaysProgress`, its own reports are passed on soon and unchanged. */
  begin(started: DurablePromise, relaysProgress: boolean): void {
    this.#current = withoutFeed(started);
    if (this.#context.reportProgress && relaysProgress) this.#relaying = this.#follow(this.#current);
  }

  stop(): void {
    clearInterval(this.#ticker);
    this.#stopped.abort();
  }

  /** Waits until the last report has been sent, which must be before the answer. */
  async drain(): Promise<void> {
    await this.#relaying;
  }

  /** The job with what it does now; as it was last seen if the caller is gone. */
  async latest(started: DurablePromise): Promise<CurrentJob> {
    const known = this.#current ?? withoutFeed(started);
    return this.#context.signal.aborted ? known : this.#check(known);
  }

  async #check(job: CurrentJob): Promise<CurrentJob> {
    const { store, signal } = this.#context;
    // An addition: if the server does not say what the job does, the call continues.
    const current = await currentJobOf(store, job.promise, signal).catch(() => this.#current ?? job);
    this.#current = current;
    if (current.questions.size > 0) this.#questions.abort();
    return current;
  }

  async #follow(job: CurrentJob): Promise<void> {
    const began = Date.now();
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      const share = (Date.now() - began) * RELAY_PAUSE_SHARE;
      await pause(Math.min(Math.max(share, FIRST_RELAY_PAUSE_MS), PROGRESS_INTERVAL_MS), signal);
      await this.#relay(job);
    }
  }

  /** Passes on the job's own report, unchanged. */
  async #relay(job: CurrentJob): Promise<void> {
    const { progress, message } = (await this.#check(job)).feed.entry ?? {};
    const news = JSON.stringify([progress, message]);
    if (!progress || news === this.#lastRelayed) return;
    this.#lastRelayed = news;
    this.#context.reportProgress?.(progress.done, progress.total, message);
  }

  #report(): void {
    if (this.#lastRelayed !== "") return;
    const at = Date.now();
    const current = this.#current;
    const { done, total } = current ? countOf(current, at) : { done: 0 };
    this.#context.reportProgress?.(done, total, current ? lineOf(current, at) : "starting");
    if (current) void this.#check(current);
  }
}

/**
 * Answers a call whose work is a job: with the result when it comes in time, otherwise with the job's name. Time counts from
 * the beginning of the call, as it does for its client.
 */
export async function waitFor(launching: Promise<DurablePromise>, context: CallContext, options: WaitOptions = {}) {
  const { store, signal, now, until, maxWaitMs, pageOf, reportProgress } = context;
  const timeout = Math.max(0, Math.min(reportProgress ? MAX_WAIT_WITH_PROGRESS_MS : maxWaitMs, until - now));
  const relay = new ProgressRelay(context);
  const present = async (promise: DurablePromise) => {
    options.onResult?.(promise.value);
    return presentJob(await withMedia(store, promise, signal), await pageOf?.(promise.name));
  };
  let settled: DurablePromise | undefined;
  let started: DurablePromise;
  try {
    started = await launching;
    if (started.state !== "pending") return await present(started);
    relay.begin(started, options.relaysProgress === true);
    await awaitSettled(store, [started.name], {
      timeout: Math.max(0, now + timeout - Date.now()),
      signal: relay.signal,
      onSettled: (_name, promise) => {
        settled = promise;
      },
    });
  } finally {
    relay.stop();
  }
  await relay.drain();
  if (settled) return present(started.note === undefined ? settled : { ...settled, note: started.note });
  return presentRunning(started, await relay.latest(started), context, options);
}

/** The answer to a call whose job continues: what it does, and how to collect its result. */
async function presentRunning(
  started: DurablePromise,
  current: CurrentJob,
  { mayConfirm, pageOf }: CallContext,
  { name: tool, consent = [] }: WaitOptions,
) {
  const { name, note } = started;
  const how = howToAnswer(name, current);
  const agree =
    how && mayConfirm && consent[0] ? ` Once the user agrees, call ${tool} again with ${consent[0]}: true.` : "";
  const state = `${how ?? "Still running; it continues by itself."}${agree}`;
  const collect = `Collect the result with await_result(job_names: ["${name}"]).`;
  return structured(
    {
      job_name: name,
      status: "running",
      ...activityOf(current, Date.now()),
      note: `${note === undefined ? "" : `${note} `}${state} ${collect}`,
      view_url: await pageOf?.(name),
    },
    {
      job: name,
      isView: true,
      ...(how && { asks: { promise: started, inputRequests: inputRequestsOf(current) } }),
    },
  );
}
