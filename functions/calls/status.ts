import * as z from "zod";
import { referringPart } from "../../core/author/index.ts";
import {
  activityOf,
  awaitSettled,
  type CurrentJob,
  countOf,
  currentJobOf,
  type DurablePromise,
  JobStatus,
  JobView,
  Json,
  lineOf,
  newerGeneration,
  Partial,
  partialOf,
  type RemoteStore,
  ResultSummary,
  statusOf,
  undecryptableView,
  viewOf,
  WaitingFor,
} from "../../core/jobs/index.ts";
import { type PromiseRecord, partsIn, undecryptableIn } from "../../core/resonate/index.ts";
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
  type Selection,
  type ToolContext,
  viewOfRange,
  withMedia,
  withShortestTexts,
} from "../../core/tools/index.ts";

/** In seconds. The default is below the minute after which common clients give up a call. */
const DEFAULT_TIMEOUT = 45;
const MAX_TIMEOUT = 300;

/** The longest wait, in milliseconds: below 300 s, the shortest known limit that cuts a call in spite of its progress. */
const MAX_WAIT_MS = 285_000;

/** For hosts that search tools: these two belong to every tool that starts a job. */
const _meta = {
  "anthropic/alwaysLoad": true,
  "anthropic/searchHint": "job status and result of what was started: poll, wait, collect",
};

/** Which parts of results are wanted. The URIs of resources have the same parameters, but not all clients read resources. */
const selection = {
  result: z.enum(["none", "summary", "full"]).optional().describe("How much."),
  fields: z.array(z.string().max(200)).max(50).optional().describe("Such as daily.time."),
  offset: z.int().min(0).optional().describe("In a large one."),
  limit: z.int().optional().describe("Characters."),
};

/** How much of partial results an answer holds, in characters, for all its jobs together. */
const MAX_PARTIAL = 10_000;

const partial_from = z.int().min(0).optional().describe("Partial results known.");

export const probeStatus = builtInTool({
  name: "probe_status",
  title: "Probe job status",
  description: "Check the status of jobs, and read a result, without waiting.",
  input: z.object({ job_names: jobNames, ...selection, partial_from }),
  output: z.object({
    statuses: z.array(JobView).describe("One entry a name, in the order asked."),
    note: z.string().optional(),
  }),
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  _meta,
  async run({ job_names, partial_from, ...selected }, { store, signal }) {
    const foreign = new Map<string, unknown>();
    const partial = { from: partial_from, limit: MAX_PARTIAL / job_names.length };
    // Each result is cut to its largest size as soon as it is read: an isolate has no room for a hundred whole results.
    const jobs = await Promise.all(
      job_names.map(async (name) => {
        const reading = readJob(store, name, selected, partial, signal);
        const { promise, view: fullView } = await reading.catch((error): Awaited<typeof reading> => {
          const undecryptable = job_names.length > 1 ? undecryptableIn(error) : undefined;
          if (!undecryptable) throw error;
          return { view: undecryptableView(name, undecryptable) };
        });
        if (promise?.job.returnsToolResult) foreign.set(name, referringPart(promise));
        const { partial: partialResults, ...view } = fullView;
        const job = cutToLimit(view, selected, MAX_ANSWER);
        return partialResults ? { ...job, view: { ...job.view, partial: partialResults } } : job;
      }),
    );
    const arranged = arrange(jobs, MAX_ANSWER);
    const note = noteOn(arranged);
    const links = linksTo(arranged.views.map(({ summary }) => summary));
    const files = [referringResults(arranged.views, foreign), arranged.views.map(({ partial }) => partial)];
    return { statuses: arranged.views, ...(note !== undefined && { note }), [ANSWER_SUBJECT]: { links, files } };
  },
});

/** How many partial results are known, and how much of the others the answer may hold, in characters. */
interface PartialRange {
  from: number | undefined;
  limit: number;
}

/** A job with its view, which for a running job has its activity. */
async function readJob(
  store: RemoteStore,
  name: string,
  selected: Selection,
  range: PartialRange,
  signal: AbortSignal,
): Promise<{ promise?: DurablePromise; view: JobView }> {
  const promise = await store.get(name, signal);
  if (!promise) return { view: viewOf(name, promise) };
  const view = await viewOfRange(store, promise, selected, MAX_ANSWER, signal);
  if (promise.state !== "pending") {
    const partial = range.from === undefined ? undefined : await partialOf(store, promise.id, range, signal);
    return { promise, view: { ...view, ...(await newerOf(store, promise, signal)), ...(partial && { partial }) } };
  }
  const current = await currentJobOf(store, promise, signal, "recent");
  const partial = await partialIn(store, current, range, signal);
  return { promise, view: { ...view, ...activityOf(current, Date.now()), ...(partial && { partial }) } };
}

/** The partial results of a running job, where it is known to have emitted some. */
async function partialIn(
  store: RemoteStore,
  { promise, feed }: CurrentJob,
  range: PartialRange,
  signal: AbortSignal,
): Promise<Partial | undefined> {
  if (!feed.entry?.emitted && range.from === undefined) return undefined;
  return partialOf(store, promise.id, range, signal);
}

/** The name and status of a newer attempt at a job that ended without a result. */
async function newerOf(
  store: RemoteStore,
  promise: DurablePromise,
  signal?: AbortSignal,
): Promise<Pick<JobView, "newer">> {
  const newer = await newerGeneration(store, promise, signal);
  return newer ? { newer: { job_name: newer.name, status: statusOf(newer) } } : {};
}

export const awaitResult = builtInTool({
  name: "await_result",
  title: "Await job results",
  description:
    "Wait for started jobs and collect their results; after timeout_seconds, with the names still " +
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
  _meta,
  waits: true,
  async run(
    { job_names, timeout_seconds = DEFAULT_TIMEOUT, partial_from: from },
    { store, now, until, signal, reportProgress },
  ) {
    const jobs = new Map<string, PartialView>();
    const foreign = new Map<string, unknown>();
    const media: CallToolResult["content"] = [];
    let room = MAX_MEDIA;
    const large: DurablePromise[] = [];
    /** Holds a job that has ended for the answer. Takes media out of its result. */
    const take = (name: string, promise: DurablePromise | undefined, undecryptable?: PromiseRecord) => {
      if (promise?.job.returnsToolResult) foreign.set(name, referringPart(promise));
      const isKnown = promise?.state === "resolved" && !partsIn(promise.value);
      const answer = isKnown ? answersOf(promise.job)?.separateMedia(promise.value, room, promise.job) : undefined;
      media.push(...(answer?.media ?? []));
      room -= answer?.size ?? 0;
      const view = undecryptable
        ? undecryptableView(name, undecryptable)
        : viewOf(name, promise && answer ? { ...promise, value: answer.answer } : promise);
      jobs.set(name, cutToLimit(view, {}, MAX_ANSWER));
      return view;
    };
    const failedJobs: DurablePromise[] = [];

    const timeout = Math.max(0, Math.min(timeout_seconds * 1_000, MAX_WAIT_MS, until - now));
    const total = job_names.length;
    let settled = 0;
    const report =
      reportProgress && total === 1
        ? reportOn(store, job_names[0] as string, signal, reportProgress)
        : () => reportProgress?.(settled, total, `${settled} of ${total} jobs settled`);

    const ticker = reportProgress && setInterval(report, PROGRESS_INTERVAL_MS);
    try {
      const running = await awaitSettled(store, job_names, {
        timeout,
        signal,
        onSettled(name, promise, undecryptable) {
          const view = take(name, promise, undecryptable);
          if (partsIn(view.result)?.media) large.push(promise as DurablePromise);
          if (promise && view.status !== "complete") failedJobs.push(promise);
          settled += 1;
          report();
        },
      });
      for (const promise of large) {
        if ((partsIn(promise.value)?.media ?? 0) > room) continue;
        take(promise.name, await withMedia(store, promise, signal));
      }
      await Promise.all(
        failedJobs.map(async (promise) => {
          // The answer says how a job has ended even if the server is too slow to say more.
          const { newer } = await newerOf(store, promise, signal).catch(() => ({ newer: undefined }));
          const { view } = jobs.get(promise.name) ?? {};
          if (newer && view) {
            const error = view.error?.replace(/[^.!?]$/, "$&.");
            view.error = `${error} A newer attempt, ${newer.job_name}, is ${newer.status}.`;
          }
        }),
      );
      const range = { from, limit: MAX_PARTIAL / job_names.length };
      const activities = await Promise.all(
        running.map(async (name) => [name, await activityOfJob(store, name, range, signal)] as const),
      );
      const questions = activities.flatMap(([name, { waiting_for }]) =>
        waiting_for ? [[name, withShortestTexts({ waiting_for }).waiting_for ?? []] as const] : [],
      );
      const partialResults = activities.flatMap(([name, { partial }]) => (partial ? [[name, partial] as const] : []));
      const cut = running.length > 0 && timeout < timeout_seconds * 1_000;
      const end = cut ? `Await those running again: this wait ended after ${Math.round(timeout / 1_000)} seconds.` : "";
      const { views, ...answer } = awaitedAnswer(
        [...jobs.values()],
        running,
        costOf(questions) + costOf(partialResults),
        end,
      );
      const links = linksTo(Object.values(answer.summaries ?? {}));
      const files = [referringResults(views, foreign), partialResults];
      return {
        ...answer,
        [ANSWER_SUBJECT]: { links, media, files },
        ...(questions.length > 0 && { waiting_for: Object.fromEntries(questions) }),
        ...(partialResults.length > 0 && { partial: Object.fromEntries(partialResults) }),
      };
    } finally {
      clearInterval(ticker);
    }
  },
});

/** The parts of jobs' results that may refer to files; `foreign`: that of each answer of a wrapped server, by job name. */
function referringResults(views: readonly JobView[], foreign: ReadonlyMap<string, unknown>): unknown[] {
  // An answer that parts of results fill has no room for lines about files.
  const hasRoom = costOf(views) < MAX_ANSWER / 2;
  return views.map(({ job_name, result, summary }) => {
    if (!foreign.has(job_name)) return result;
    return result !== undefined || (summary && hasRoom) ? foreign.get(job_name) : undefined;
  });
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
): Promise<Pick<JobView, "waiting_for" | "partial">> {
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

function awaitedAnswer(jobs: readonly PartialView[], running: readonly string[], usedCharacters: number, end: string) {
  const arranged = arrange(jobs, MAX_ANSWER, { usedCharacters: costOf(running) + usedCharacters });
  const note = [noteOn(arranged), end].filter(Boolean).join(" ");
  const { views } = arranged;
  const cutViews = views.filter(({ summary }) => summary !== undefined);
  return {
    views,
    results: byName(
      views.filter((view) => "result" in view),
      ({ result }) => result,
    ),
    errors: byName(
      views.filter(({ status }) => status !== "complete"),
      ({ status, error }) => `${status}: ${error}`,
    ),
    running: [...running],
    ...(cutViews.length > 0 && { summaries: byName(cutViews, ({ summary }) => summary as ResultSummary) }),
    ...(note && { note }),
  };
}

export const cancelJob = builtInTool({
  name: "cancel_job",
  title: "Cancel jobs",
  description: "Stop jobs for good. Finished ones stay; one that others started too continues for them.",
  input: z.object({ job_names: jobNames }),
  output: z.object({
    cancelled: z.array(z.string()).describe("Stopped now, or before."),
    given_up: z.array(z.string()).optional().describe("Going on, but only for others who started them too."),
    already_finished: z.array(z.string()).describe("Had ended by itself before it could be stopped."),
    not_found: z.array(z.string()).describe("No such job, or none that you started."),
    newer: z
      .record(z.string(), z.object({ job_name: z.string(), status: JobStatus }))
      .optional()
      .describe("Newer attempts at jobs that had ended, not touched: cancel those by their own names."),
  }),
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  async run({ job_names }, { store }) {
    const cancellations = await Promise.all(job_names.map((name) => store.cancel(name)));
    const outcomes = Object.groupBy(job_names, (_name, i) => outcomeOf(cancellations[i]?.promise));
    // A job that has ended just now has no newer attempt.
    const before = cancellations.flatMap((cancellation) =>
      cancellation && !cancellation.isOurs ? [cancellation.promise] : [],
    );
    const newer = (
      await Promise.all(before.map(async (promise) => ({ name: promise.name, ...(await newerOf(store, promise)) })))
    ).flatMap(({ name, newer }) => (newer ? [[name, newer] as const] : []));
    // Very long names may not fit; the outcomes always do.
    while (newer.length > 0 && costOf([outcomes, newer]) > MAX_ANSWER - 1_000) newer.pop();
    return {
      cancelled: [],
      already_finished: [],
      not_found: [],
      ...outcomes,
      ...(newer.length > 0 && { newer: Object.fromEntries(newer) }),
    };
  },
});

type Outcome = "cancelled" | "given_up" | "already_finished" | "not_found";

function outcomeOf(promise: DurablePromise | undefined): Outcome {
  if (!promise) return "not_found";
  if (promise.state === "pending") return "given_up";
  return promise.state === "rejected_canceled" ? "cancelled" : "already_finished";
}
