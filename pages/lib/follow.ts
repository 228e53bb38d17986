/**
 * Follows jobs with one stream for all tabs of a browser. The tab that holds the lock opens the stream and passes its news on to
 * the others. Hidden tabs follow nothing. While there is no stream, followers learn this and poll.
 */
import { isStream, messagesIn, send } from "./server.ts";

/** The first and the longest pause before a lost stream is reopened. */
const MIN_RECONNECT_PAUSE_MS = 1_000;
const MAX_RECONNECT_PAUSE_MS = 15_000;

/** How long to gather requests of further tabs before the stream is reopened. */
const GATHERING_MS = 250;

const MAX_TASKS_PER_STREAM = 100;

type Message =
  | { kind: "who" }
  | { kind: "want"; tab: string; tasks: string[] }
  | { kind: "news"; task: string }
  | { kind: "stream"; isOpen: boolean };

export interface Follower {
  /** Called when the job may have changed. */
  onNews(): void;
  /** Called when a stream opens or ends. While it is open, the follower need not poll. */
  onStream(isOpen: boolean): void;
}

/** Follows the job of a task until the returned function is called. */
export function follow(task: string, follower: Follower): () => void {
  // Browsers have locks only if the connection is secure.
  if (!("locks" in navigator)) return () => {};
  const tab = new Tab(task, follower);
  return () => tab.close();
}

/** This tab's part in following: it names its task to the others, and opens the stream when it holds the lock. */
class Tab {
  readonly #id = crypto.randomUUID();
  readonly #channel = new BroadcastChannel("follow");
  readonly #task: string;
  readonly #follower: Follower;
  /** The tasks of all tabs, by tab. */
  readonly #tasks = new Map<string, string[]>();
  /** Ends this tab's lead, or its wait for the lock; undefined while the tab is hidden. */
  #lead: AbortController | undefined;
  #reopen: (() => void) | undefined;
  readonly #onVisibility = () => this.#update();

  constructor(task: string, follower: Follower) {
    this.#task = task;
    this.#follower = follower;
    this.#channel.onmessage = ({ data }) => this.#onMessage(data);
    document.addEventListener("visibilitychange", this.#onVisibility);
    this.#update();
  }

  close(): void {
    document.removeEventListener("visibilitychange", this.#onVisibility);
    this.#lead?.abort();
    this.#channel.postMessage({ kind: "want", tab: this.#id, tasks: [] } satisfies Message);
    this.#channel.close();
  }

  /** Follows while the tab is visible. */
  #update(): void {
    if (document.visibilityState !== "visible") {
      this.#lead?.abort();
      this.#lead = undefined;
      this.#channel.postMessage(this.#want());
      return;
    }
    this.#follower.onNews();
    if (this.#lead) return;
    this.#channel.postMessage(this.#want());
    const lead = new AbortController();
    this.#lead = lead;
    navigator.locks.request("follow", { signal: lead.signal }, () => this.#leadUntil(lead.signal)).catch(() => {});
  }

  #want(): Message {
    return { kind: "want", tab: this.#id, tasks: document.visibilityState === "visible" ? [this.#task] : [] };
  }

  #broadcast(message: Message): void {
    this.#channel.postMessage(message);
    this.#onMessage(message);
  }

  #onMessage(message: Message): void {
    if (message.kind === "news" && message.task === this.#task) this.#follower.onNews();
    if (message.kind === "stream") this.#follower.onStream(message.isOpen);
    if (message.kind === "who") this.#broadcast(this.#want());
    if (message.kind !== "want" || !this.#lead) return;
    if (JSON.stringify(this.#tasks.get(message.tab) ?? []) === JSON.stringify(message.tasks)) return;
    this.#tasks.set(message.tab, message.tasks);
    this.#reopen?.();
  }

  /** Opens the stream, and reopens it when it is lost or when tabs want other tasks. */
  async #leadUntil(signal: AbortSignal): Promise<void> {
    let pause = MIN_RECONNECT_PAUSE_MS;
    this.#broadcast({ kind: "who" });
    while (!signal.aborted) {
      const change = new AbortController();
      this.#reopen = () => change.abort();
      const end = AbortSignal.any([signal, change.signal]);
      const taskIds = [...new Set([...this.#tasks.values()].flat())].slice(0, MAX_TASKS_PER_STREAM);
      const wasOpen = taskIds.length > 0 && (await this.#stream(taskIds, end).catch(() => false));
      if (end.aborted) {
        await wait(GATHERING_MS, signal);
        continue;
      }
      this.#broadcast({ kind: "stream", isOpen: false });
      if (wasOpen) pause = MIN_RECONNECT_PAUSE_MS;
      await wait(pause, end);
      pause = Math.min(pause * 2, MAX_RECONNECT_PAUSE_MS);
    }
  }

  /** Resolves at the end of the stream, with whether it was opened. */
  async #stream(taskIds: string[], signal: AbortSignal): Promise<boolean> {
    const response = await send("subscriptions/listen", { notifications: { taskIds } }, signal);
    if (!response.ok || !isStream(response)) return false;
    this.#broadcast({ kind: "stream", isOpen: true });
    for (const id of taskIds) this.#broadcast({ kind: "news", task: id });
    for await (const { params } of messagesIn(response)) {
      if (params?.taskId) this.#broadcast({ kind: "news", task: params.taskId });
    }
    return true;
  }
}

function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
