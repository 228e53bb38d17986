import type { Channel, RemoteStore } from "../resonate/store.ts";
import { type DetailedTask, detailedTask, snapshotOf, type TaskSnapshot } from "./task.ts";

/** The pause before a lost or refused connection is tried again, in milliseconds: doubled from first to last. */
const FIRST_PAUSE = 250;
const LAST_PAUSE = 4_000;

/** A task that is watched: its id and its job's name. */
export interface Watched {
  taskId: string;
  name: string;
}

/**
 * Reports every task once it is known to be other than plainly working, and again at each change, until all have
 * ended or `signal` aborts. Changes are pushed by the Resonate server, over one connection however many tasks there are.
 */
export async function watchTasks(
  store: RemoteStore,
  tasks: readonly Watched[],
  onChange: (task: DetailedTask) => void,
  signal: AbortSignal,
): Promise<void> {
  if (tasks.length === 0) return;
  const allEnded = new AbortController();
  const over = AbortSignal.any([signal, allEnded.signal]);
  const watchers = new Map(tasks.map((task) => [task.name, new Watcher(store, task, onChange, over)]));
  const look = async (name: string, channel: Channel) => {
    const watcher = watchers.get(name);
    if (!watcher || !(await watcher.look(channel))) return;
    watchers.delete(name);
    if (watchers.size === 0) allEnded.abort();
  };

  for (let pause = FIRST_PAUSE; !over.aborted; pause = Math.min(pause * 2, LAST_PAUSE)) {
    const lost = Promise.withResolvers<void>();
    const failed = new AbortController();
    over.addEventListener("abort", () => lost.resolve(), { once: true });
    try {
      // A look that fails leaves its task unlistened to: the connection is made anew, and all are looked at again.
      const open = AbortSignal.any([over, failed.signal]);
      const channel: Channel = await store.open(({ name }) => look(name, channel).catch(() => lost.resolve()), open);
      await Promise.all([...watchers.keys()].map((name) => look(name, channel)));
      pause = FIRST_PAUSE;
      await Promise.race([channel.closed, lost.promise]);
    } catch {
      // Tried again after the pause, for as long as somebody watches.
    }
    failed.abort(); // a server serves a bounded number of connections
    if (!over.aborted) await Promise.race([new Promise((resolve) => setTimeout(resolve, pause)), lost.promise]);
  }
}

class Watcher {
  readonly #store: RemoteStore;
  readonly #task: Watched;
  readonly #onChange: (task: DetailedTask) => void;
  readonly #signal: AbortSignal;
  /** Looks are made one after another, so that what is reported never goes back in time. */
  #last: Promise<unknown> = Promise.resolve();
  #reported: string;

  constructor(store: RemoteStore, task: Watched, onChange: (task: DetailedTask) => void, signal: AbortSignal) {
    this.#store = store;
    this.#task = task;
    this.#onChange = onChange;
    this.#signal = signal;
    this.#reported = JSON.stringify({ status: "working" });
  }

  /** Reports the task if it has changed and listens for its next change. Whether the task has ended. */
  look(channel: Channel): Promise<boolean> {
    const look = this.#last.catch(() => {}).then(() => this.#look(channel));
    this.#last = look;
    return look;
  }

  async #look(channel: Channel): Promise<boolean> {
    const snapshot = await this.#listenAndRead(channel);
    if (!snapshot) return true;
    const task = detailedTask(this.#task.taskId, snapshot, Date.now());
    const { taskId, createdAt, ttlMs, pollIntervalMs, lastUpdatedAt, ...said } = task;
    const report = JSON.stringify(said);
    if (report !== this.#reported) {
      this.#reported = report;
      this.#onChange(task);
    }
    return snapshot.promise.state !== "pending";
  }

  /** Listens before it reads, so that nothing happens unnoticed in between. */
  async #listenAndRead(channel: Channel): Promise<TaskSnapshot | undefined> {
    for (;;) {
      const promise = await this.#store.listen(this.#task.name, channel, this.#signal);
      if (!promise) return undefined;
      const snapshot = await snapshotOf(this.#store, promise, this.#signal);
      if (promise.state !== "pending" || !promise.job.keepsJournal) return snapshot;
      const moved = await Promise.all([
        this.#store.journals.listenToEntry(promise, snapshot.journal.n + 1, channel, this.#signal),
        ...[...snapshot.questions.values()].map(({ promiseId }) =>
          this.#store.journals.listenToQuestion(promiseId, channel, this.#signal),
        ),
      ]);
      if (!moved.includes(true)) return snapshot;
    }
  }
}
