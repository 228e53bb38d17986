import { latestOf } from "../../core/jobs/feed/partial.ts";
import { timelineOf } from "../../core/jobs/feed/timeline.ts";
import type { DurablePromise, RemoteStore } from "../../core/jobs/remote-store.ts";
import { jobSnapshotOf } from "../../core/jobs/snapshot.ts";
import { newerGeneration } from "../../core/jobs/starting/start.ts";
import { statusOf, viewOf } from "../../core/jobs/status.ts";

/** A job as its page shows it, with its timeline from the `from`th record on. */
export async function jobPage(store: RemoteStore, promise: DurablePromise, from: number, signal: AbortSignal) {
  const { job, args, deadline } = promise;
  const [{ feed, questions }, newer, timeline, waits] = await Promise.all([
    jobSnapshotOf(store, promise, signal, "recent"),
    newerGeneration(store, promise, signal),
    timelineOf(promise.id, from, (id) => store.child(id, signal)),
    store.isOffered(promise, signal),
  ]);
  const partial = await latestOf(store, promise.id, feed.entry, signal);
  const { questions: _asked, ...doing } = feed.entry ?? { questions: {} };
  return {
    ...viewOf(promise.name, promise),
    kind: job.kind,
    args,
    view: job.view,
    deadline: new Date(deadline).toISOString(),
    doing,
    questions: [...questions].map(([key, { question }]) => ({ key, ...question })),
    timeline,
    waits,
    ...(partial && { partial }),
    ...(newer && { newer: { job_name: newer.name, status: statusOf(newer) } }),
  };
}
