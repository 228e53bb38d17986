/**
 * Follows jobs with one stream for all tabs of a browser. The tab that holds the lock opens the stream and passes its news on to
 * the others. Hidden tabs follow nothing. While there is no stream, followers are told so and poll.
 */
import { isStream, messagesIn, send } from "./server.ts";

/** The first and the longest pause before a lost stream is reopened, in milliseconds. */
const RECONNECT = { first: 1_000, most: 15_000 };

/** How long to gather requests of further tabs before the stream is reopened, in milliseconds. */
const GATHERING = 250;

/** The largest number of tasks in one stream. */
const MOST = 100;

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
export function follow(task: string, { onNews, onStream }: Follower): () => void {
  // Browsers have locks only where the connection is secure.
  if (!("locks" in navigator)) return () => {};
  const tab = crypto.randomUUID();
  const channel = new BroadcastChannel("follow");
  const wanted = new Map<string, string[]>();
  let leading: AbortController | undefined;
  let reopen: (() => void) | undefined;

  const isWanted = () => document.visibilityState === "visible";
  const want = (): Message => ({ kind: "want", tab, tasks: isWanted() ? [task] : [] });
  const tell = (message: Message) => {
    channel.postMessage(message);
    hear(message);
  };
  const hear = (message: Message) => {
    if (message.kind === "news" && message.task === task) onNews();
    if (message.kind === "stream") onStream(message.isOpen);
    if (message.kind === "who") tell(want());
    if (message.kind === "want" && leading) {
      if (JSON.stringify(wanted.get(message.tab) ?? []) === JSON.stringify(message.tasks)) return;
      wanted.set(message.tab, message.tasks);
      reopen?.();
    }
  };
  channel.onmessage = ({ data }) => hear(data);

  /** Leads while the tab is visible: opens the stream, and reopens it when it is lost or when tabs want other tasks. */
  const lead = async (signal: AbortSignal) => {
    let pause = RECONNECT.first;
    tell({ kind: "who" });
    while (!signal.aborted) {
      const changed = new AbortController();
      reopen = () => changed.abort();
      const over = AbortSignal.any([signal, changed.signal]);
      const taskIds = [...new Set([...wanted.values()].flat())].slice(0, MOST);
      const opened = taskIds.length > 0 && (await stream(taskIds, over).catch(() => false));
      if (over.aborted) {
        await wait(GATHERING, signal);
        continue;
      }
      tell({ kind: "stream", isOpen: false });
      if (opened) pause = RECONNECT.first;
      await wait(pause, over);
      pause = Math.min(pause * 2, RECONNECT.most);
    }
  };

  /** Resolves at the end of the stream, with whether it was opened. */
  const stream = async (taskIds: string[], signal: AbortSignal): Promise<boolean> => {
    const response = await send("subscriptions/listen", { notifications: { taskIds } }, signal);
    if (!response.ok || !isStream(response)) return false;
    tell({ kind: "stream", isOpen: true });
    for (const id of taskIds) tell({ kind: "news", task: id });
    for await (const { params } of messagesIn(response)) {
      if (params?.taskId) tell({ kind: "news", task: params.taskId });
    }
    return true;
  };

  const turn = () => {
    if (!isWanted()) {
      leading?.abort();
      leading = undefined;
      channel.postMessage(want());
      return;
    }
    onNews();
    if (leading) return;
    channel.postMessage(want());
    const led = new AbortController();
    leading = led;
    navigator.locks.request("follow", { signal: led.signal }, () => lead(led.signal)).catch(() => {});
  };
  document.addEventListener("visibilitychange", turn);
  turn();
  return () => {
    document.removeEventListener("visibilitychange", turn);
    leading?.abort();
    channel.postMessage({ kind: "want", tab, tasks: [] } satisfies Message);
    channel.close();
  };
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
