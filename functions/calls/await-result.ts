/** `await_result`: waits for jobs and collects their results. */
import * as z from "zod";
import { referringPart } from "../../core/author/index.ts";
import {
  activityOf,
  awaitSettled,
  type CurrentJob,
  countOf,
  currentJobOf,
  type DurablePromise,
  type JobView,
  Json,
  lineOf,
  Partial,
  type PartialRange,
  type RemoteStore,
  ResultSummary,
  undecryptableView,
  viewOf,
  WaitingFor,
} from "../../core/jobs/index.ts";
import { type PromiseRecord, partsIn } from "../../core/resonate/index.ts";
import {
  ANSWER_SUBJECT,
  answersOf,
  arrange,
  builtInTool,
  type CallToolResult,
  costOf,
  cutToLimit,
  jobNames,
  linksTo,
  MAX_ANSWER,
  MAX_MEDIA,
  noteOn,
  type PartialView,
  PROGRESS_INTERVAL_MS,
  type ToolContext,
  viewOfOmitted,
  withMedia,
  withShortestTexts,
} from "../../core/tools/index.ts";
import { alwaysListed, newerOf, partial_from, partialIn, partialRangeOf, referringResults } from "./job-views.ts";

/** In seconds. The default is below the minute after which common clients give up a call. */
const DEFAULT_TIMEOUT = 45;
const MAX_TIMEOUT = 300;

/** The longest wait, in milliseconds: below 300 s, the shortest known limit that cuts a call in spite of its progress. */
const MAX_WAIT_MS = 285_000;

export const awaitResult = builtInTool({
  name: "await_result",
  title: "Await job results",
  description:
    "Wait for started jobs and collect their results; after timeout_seconds, with those still " +
    "running, to await again. If calls are cut short, wait in turns of 4 seconds.",
  input: z.object({
    job_names: jobNames,
    timeout_seconds: z.number().min(1).max(MAX_TIMEOUT).optional().describe(`Default: ${DEFAULT_TIMEOUT}.`),
    partial_from,
  }),
  output: z.object({
    results: z.record(z.string(), Json).describe("Of each job that is complete, by job name."),
    errors: z.record(z.string(), z.string()).describe("Why a job has no result, by job name."),
    running: z.array(z.string()).describe("The names that had not settled in time."),
    waiting_for: z
      .record(z.string(), z.array(WaitingFor))
      .optional()
      .describe("What those that are running ask, by job name."),
    partial: z.record(z.string(), Partial).optional().describe("Of those that are running, by job name."),
    summaries: z
      .record(z.string(), ResultSummary)
      .optional()
      .describe("Of those that are not in results, by job name."),
    note: z.string().optional(),
  }),
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  _meta: alwaysListed,
  waits: true,
  async run(
    { job_names, timeout_seconds = DEFAULT_TIMEOUT, partial_from: from },
    { store, now, until, signal, reportProgress },
  ) {
    const ended = new EndedJobs(signal);
    const timeout = Math.max(0, Math.min(timeout_seconds * 1_000, MAX_WAIT_MS, until - now));
    const total = job_names.length;
    const report =
      reportProgress && total === 1
        ? reportOn(store, job_names[0] as string, signal, reportProgress)
        : () => reportProgress?.(ended.count, total, `${ended.count} of ${total} jobs settled`);

    const ticker = reportProgress && setInterval(report, PROGRESS_INTERVAL_MS);
    try {
      const running = await awaitSettled(store, job_names, {
        timeout,
        signal,
        onSettled(name, promise, undecryptable) {
          ended.add(name, promise, undecryptable);
          report();
        },
      });
      await ended.complete(store);
      const range = partialRangeOf(from, job_names.length);
      const activities = await Promise.all(
        running.map(async (name) => [name, await activityOfJob(store, name, range, signal)] as const),
      );
      const isCut = running.length > 0 && timeout < timeout_seconds * 1_000;
      const end = isCut
        ? `Await those running again: this wait ended after ${Math.round(timeout / 1_000)} seconds.`
        : "";
      return awaitedAnswer(ended, activities, end);
    } finally {
      clearInterval(ticker);
    }
  },
});

/** The jobs that have ended, as far as one answer has room for their results. */
class EndedJobs {
  /** Taken out of the results. */
  readonly media: CallToolResult["content"] = [];
  readonly #views = new Map<string, PartialView>();
  readonly #toolResults = new Map<string, unknown>();
  readonly #failed: DurablePromise[] = [];
  /** With media that are stored in chunks. */
  readonly #large: DurablePromise[] = [];
  readonly #signal: AbortSignal;
  #mediaRoom = MAX_MEDIA;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  get count(): number {
    return this.#views.size;
  }

  get views(): readonly PartialView[] {
    return [...this.#views.values()];
  }

  /** By job name, what refers to files in the answers of wrapped servers. */
  get toolResults(): ReadonlyMap<string, unknown> {
    return this.#toolResults;
  }

  add(name: string, promise: DurablePromise | undefined, undecryptable?: PromiseRecord): void {
    const view = this.#take(name, promise, undecryptable);
    if (promise && partsIn(view.result)?.media) this.#large.push(promise);
    if (promise && view.status !== "complete") this.#failed.push(promise);
  }

  /** Adds media that are stored in chunks, if there is room, and newer attempts at jobs without a result. */
  async complete(store: RemoteStore): Promise<void> {
    for (const promise of this.#large) {
      if ((partsIn(promise.value)?.media ?? 0) > this.#mediaRoom) continue;
      this.#take(promise.name, await withMedia(store, promise, this.#signal));
    }
    await Promise.all(this.#failed.map((promise) => this.#addNewer(store, promise)));
  }

  /** Notes the view of a job, without the media that the answer has beside it. */
  #take(name: string, promise: DurablePromise | undefined, undecryptable?: PromiseRecord): JobView {
    if (promise?.omitted !== undefined) {
      const view = viewOf(name, promise);
      this.#views.set(name, viewOfOmitted(view, promise.omitted));
      return view;
    }
    if (promise?.job.returnsToolResult) this.#toolResults.set(name, referringPart(promise));
    const isKnown = promise?.state === "resolved" && !partsIn(promise.value);
    const answer = isKnown
      ? answersOf(promise.job)?.separateMedia(promise.value, this.#mediaRoom, promise.job)
      : undefined;
    this.media.push(...(answer?.media ?? []));
    this.#mediaRoom -= answer?.size ?? 0;
    const view = undecryptable
      ? undecryptableView(name, undecryptable)
      : viewOf(name, promise && answer ? { ...promise, value: answer.answer } : promise);
    this.#views.set(name, cutToLimit(view, {}, MAX_ANSWER));
    return view;
  }

  async #addNewer(store: RemoteStore, promise: DurablePromise): Promise<void> {
    // The answer says how a job has ended even if the server is too slow to say more.
    const { newer } = await newerOf(store, promise, this.#signal).catch(() => ({ newer: undefined }));
    const { view } = this.#views.get(promise.name) ?? {};
    if (!newer || !view) return;
    const error = view.error?.replace(/[^.!?]$/, "$&.");
    view.error = `${error} A newer attempt, ${newer.job_name}, is ${newer.status}.`;
  }
}

/** A function that reports the progress of a job, as it was read after the previous report. */
function reportOn(
  store: RemoteStore,
  name: string,
  signal: AbortSignal,
  reportProgress: NonNullable<ToolContext["reportProgress"]>,
): () => void {
  let current: CurrentJob | undefined;
  const look = async () => {
    const promise = await store.get(name, signal);
    current = promise && (await currentJobOf(store, promise, signal, "recent"));
  };
  // Reports are optional: a slow server does not fail the call.
  const lookOn = () => void look().catch(() => {});
  lookOn();
  return () => {
    const now = Date.now();
    const { done, total } = current ? countOf(current, now) : { done: 0 };
    reportProgress(done, total, current ? lineOf(current, now) : `${name}: not known yet`);
    lookOn();
  };
}

/** The open questions and partial results of a running job, where there are any and they can be read. */
async function activityOfJob(
  store: RemoteStore,
  name: string,
  range: PartialRange,
  signal: AbortSignal,
): Promise<Activity> {
  if (signal.aborted) return {};
  try {
    const promise = await store.get(name, signal);
    if (!promise) return {};
    const current = await currentJobOf(store, promise, signal);
    const { waiting_for } = activityOf(current, Date.now());
    const partial = await partialIn(store, current, range, signal);
    return { ...(waiting_for && { waiting_for }), ...(partial && { partial }) };
  } catch {
    // The results are known: a server that fails now must not take them away.
    return {};
  }
}

/** Made from entries, as a job may be called `__proto__`. */
const byName = <Value>(views: readonly JobView[], value: (view: JobView) => Value): Record<string, Value> =>
  Object.fromEntries(views.map((view) => [view.job_name, value(view)]));

type Activity = Pick<JobView, "waiting_for" | "partial">;

/** The answer about jobs of which some have ended and some, with what they do, are running. `end`: words at its end. */
function awaitedAnswer(ended: EndedJobs, activities: readonly (readonly [string, Activity])[], end: string) {
  const running = activities.map(([name]) => name);
  const questions = activities.flatMap(([name, { waiting_for }]) =>
    waiting_for ? [[name, withShortestTexts({ waiting_for }).waiting_for ?? []] as const] : [],
  );
  const partialResults = activities.flatMap(([name, { partial }]) => (partial ? [[name, partial] as const] : []));
  const usedCharacters = costOf(running) + costOf(questions) + costOf(partialResults);
  const arranged = arrange(ended.views, MAX_ANSWER, { usedCharacters });
  const { views } = arranged;
  const note = [noteOn(arranged), end].filter(Boolean).join(" ");
  const cutViews = views.filter(({ summary }) => summary !== undefined);
  const summaries = byName(cutViews, ({ summary }) => summary as ResultSummary);
  const files = [referringResults(views, ended.toolResults), partialResults];
  return {
    results: byName(
      views.filter((view) => "result" in view),
      ({ result }) => result,
    ),
    errors: byName(
      views.filter(({ status }) => status !== "complete"),
      ({ status, error }) => `${status}: ${error}`,
    ),
    running,
    ...(cutViews.length > 0 && { summaries }),
    ...(note && { note }),
    [ANSWER_SUBJECT]: { links: linksTo(Object.values(summaries)), media: ended.media, files },
    ...(questions.length > 0 && { waiting_for: Object.fromEntries(questions) }),
    ...(partialResults.length > 0 && { partial: Object.fromEntries(partialResults) }),
  };
}
