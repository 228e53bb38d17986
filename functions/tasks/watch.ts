import { subscribe } from "../../core/jobs/promise-watcher.ts";
import type { Channel, RemoteStore } from "../../core/jobs/remote-store.ts";
import { type JobSnapshot, jobSnapshotOf } from "../../core/jobs/snapshot.ts";
import { mayTell } from "../../core/jobs/status.ts";
import { type DetailedTask, detailedTask, type Telling } from "./task.ts";

/** A task that is watched: its id and its job's name. */
export interface Watched {
  taskId: string;
  name: string;
}

/**
 * Reports every task once it is known to be other than plainly working, and again at each change, until all have
 * ended or `signal` aborts. Changes are pushed by the Resonate server, over one connection however many tasks there are;
 * see {@link subscribe} for when the promises are read instead.
 */
export async function watchTasks(
  store: RemoteStore,
  tasks: readonly Watched[],
  telling: Omit<Telling, "now">,
  onChange: (task: DetailedTask) => void,
  signal: AbortSignal,
): Promise<void> {
  if (tasks.length === 0) return;
  const allEnded = new AbortController();
  const over = AbortSignal.any([signal, allEnded.signal]);
  const watchers = new Map(
    tasks.map((task) => [task.name, new Watcher(store, { ...task, ...telling }, onChange, over)]),
  );
  const look = async (name: string, channel: Channel | undefined) => {
    const watcher = watchers.get(name);
    if (!watcher || !(await watcher.look(channel))) return;
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

class Watcher {
  readonly #store: RemoteStore;
  readonly #task: Watched & Omit<Telling, "now">;
  readonly #onChange: (task: DetailedTask) => void;
  readonly #signal: AbortSignal;
  /** Looks are made one after another, so that what is reported never goes back in time. */
  #last: Promise<unknown> = Promise.resolve();
  #reported: string;

  constructor(
    store: RemoteStore,
    task: Watched & Omit<Telling, "now">,
    onChange: (task: DetailedTask) => void,
    signal: AbortSignal,
  ) {
    this.#store = store;
    this.#task = task;
    this.#onChange = onChange;
    this.#signal = signal;
    this.#reported = JSON.stringify({ status: "working" });
  }

  /** Reports the task if it has changed and, given a channel, listens for its next change. Whether the task has ended. */
  look(channel: Channel | undefined): Promise<boolean> {
    const look = this.#last.catch(() => {}).then(() => this.#look(channel));
    this.#last = look;
    return look;
  }

  async #look(channel: Channel | undefined): Promise<boolean> {
    const snapshot = await (channel ? this.#listenAndRead(channel) : this.#read());
    if (!snapshot) return true;
    const task = detailedTask(this.#task.taskId, snapshot, { ...this.#task, now: Date.now() });
    const { taskId, createdAt, ttlMs, pollIntervalMs, lastUpdatedAt, ...said } = task;
    const report = JSON.stringify(said);
    if (report !== this.#reported) {
      this.#reported = report;
      this.#onChange(task);
    }
    return snapshot.promise.state !== "pending";
  }

  async #read(): Promise<JobSnapshot | undefined> {
    const promise = await this.#store.get(this.#task.name, this.#signal);
    return promise && jobSnapshotOf(this.#store, promise, this.#signal);
  }

  /** Listens before it reads, so that nothing happens unnoticed in between. */
  async #listenAndRead(channel: Channel): Promise<JobSnapshot | undefined> {
    for (;;) {
      const promise = await this.#store.listen(this.#task.name, channel, this.#signal);
      if (!promise) return undefined;
      const snapshot = await jobSnapshotOf(this.#store, promise, this.#signal);
      if (!mayTell(promise, Date.now())) return snapshot;
      const moved = await Promise.all([
        this.#store.feeds.listenToEntry(promise, snapshot.feed.n + 1, channel, this.#signal),
        ...[...snapshot.questions.values()].map(({ promiseId }) =>
          this.#store.feeds.listenToQuestion(promiseId, channel, this.#signal),
        ),
      ]);
      if (!moved.includes(true)) return snapshot;
    }
  }
}
