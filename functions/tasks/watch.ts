import type { Channel, RemoteStore } from "../../core/jobs/remote-store.ts";
import { doingOf, type JobSnapshot, jobSnapshotOf } from "../../core/jobs/snapshot.ts";
import { mayTell } from "../../core/jobs/status.ts";
import { subscribe } from "../../core/jobs/waiting/promise-watcher.ts";
import { withMedia } from "../../core/tools/answers.ts";
import { type Audience, type DetailedTask, detailedTask } from "./task.ts";

/** A task that is watched, and the name of its job. */
export interface Watched {
  taskId: string;
  name: string;
  /** The address of the job's page, which is the same in each report. */
  page: string | undefined;
}

type OnChange = (task: DetailedTask) => void;

/**
 * Reports each task as soon as it has more to say than "working", and again at each change, until all have ended or `signal`
 * aborts. The Resonate server pushes changes over one connection for all tasks; {@link subscribe} says when the promises are
 * read instead.
 */
export async function watchTasks(
  store: RemoteStore,
  tasks: readonly Watched[],
  audience: Omit<Audience, "now" | "page">,
  onChange: OnChange,
  signal: AbortSignal,
): Promise<void> {
  if (tasks.length === 0) return;
  const allEnded = new AbortController();
  const over = AbortSignal.any([signal, allEnded.signal]);
  const watchers = new Map(tasks.map((task) => [task.name, watcher(store, task, audience, onChange, over)]));
  const look = async (name: string, channel: Channel | undefined) => {
    if (!(await watchers.get(name)?.(channel))) return;
    watchers.delete(name);
    if (watchers.size === 0) allEnded.abort();
  };
  await subscribe(
    store,
    {
      names: tasks.map(({ name }) => name),
      look: (channel) => Promise.all([...watchers.keys()].map((name) => look(name, channel))),
      onNews: ({ name }, channel) => look(name, channel),
    },
    over,
  );
}

/**
 * A function that reports a task if it has changed, and listens for its next change on a channel. It resolves to whether the
 * task has ended. Looks happen one after another, so that reports never go back in time.
 */
function watcher(
  store: RemoteStore,
  { taskId, name, page }: Watched,
  audience: Omit<Audience, "now" | "page">,
  onChange: OnChange,
  signal: AbortSignal,
): (channel: Channel | undefined) => Promise<boolean> {
  let last: Promise<unknown> = Promise.resolve();
  let reported: string | undefined;

  const look = async (channel: Channel | undefined) => {
    const snapshot = await (channel ? listenAndRead(store, name, channel, signal) : read(store, name, signal));
    if (!snapshot) return true;
    const promise = await withMedia(store, snapshot.promise, signal);
    const task = detailedTask(taskId, { ...snapshot, promise }, { ...audience, page, now: Date.now() });
    const { taskId: _, createdAt, ttlMs, pollIntervalMs, lastUpdatedAt, ...changing } = task;
    const report = JSON.stringify(changing);
    // That it is working is known.
    const isNews = reported !== undefined || task.status !== "working" || doingOf(snapshot, Date.now()) !== undefined;
    if (isNews && report !== reported) onChange(task);
    reported = report;
    return snapshot.promise.state !== "pending";
  };

  return (channel) => {
    const next = last.catch(() => {}).then(() => look(channel));
    last = next;
    return next;
  };
}

async function read(store: RemoteStore, name: string, signal: AbortSignal): Promise<JobSnapshot | undefined> {
  const promise = await store.get(name, signal);
  return promise && jobSnapshotOf(store, promise, signal);
}

/** Listens before it reads, so that no change in between goes unnoticed. */
async function listenAndRead(
  store: RemoteStore,
  name: string,
  channel: Channel,
  signal: AbortSignal,
): Promise<JobSnapshot | undefined> {
  for (;;) {
    const promise = await store.listen(name, channel, signal);
    if (!promise) return undefined;
    const snapshot = await jobSnapshotOf(store, promise, signal);
    if (!mayTell(promise, Date.now())) return snapshot;
    const moved = await Promise.all([
      store.feeds.listenToEntry(promise, snapshot.feed.n + 1, channel, signal),
      ...[...snapshot.questions.values()].map(({ promiseId }) =>
        store.feeds.listenToQuestion(promiseId, channel, signal),
      ),
    ]);
    if (!moved.includes(true)) return snapshot;
  }
}
