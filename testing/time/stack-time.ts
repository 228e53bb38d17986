/** The time of a stack's processes, which the test moves. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer, type Server, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { programPath } from "../../cli/package.ts";
import { CLOCK_VARIABLE } from "./shift-date.ts";

/** The modules and variables with which a process starts so that it follows the time. */
interface Movable {
  imports: readonly string[];
  env: Record<string, string>;
}

/** Moves the time of the processes that were started with `movable`. */
export interface Time extends AsyncDisposable {
  /** How far the time is ahead of the machine's, in milliseconds. */
  readonly ahead: number;
  /** Makes a process of this kind follow the time. */
  movable(kind: string): Movable;
  /** Moves the time by `ms` milliseconds; resolves when every process has followed. */
  move(ms: number): Promise<void>;
}

/** Lets a process know how far the time is ahead; resolves when the process has followed. */
type Notify = (ahead: number) => Promise<void>;

/** How long the time waits for a process to follow, in real milliseconds. */
const FOLLOW_TIMEOUT_MS = 5_000;

/**
 * `order` lists the kinds of processes in the order in which they follow; `notifyOther` is called after the first kind has
 * followed. A process that is stopped or blocked holds the time up once, for `timeout` milliseconds, and follows when it
 * continues.
 */
export async function startTime(
  order: readonly string[],
  notifyOther: Notify,
  timeout = FOLLOW_TIMEOUT_MS,
): Promise<Time> {
  let ahead = 0;
  const notifyOtherInTime = withTimeout(notifyOther, timeout);
  const kinds = await Promise.all(order.map((kind) => listenFor(kind, () => ahead, timeout)));
  return {
    get ahead() {
      return ahead;
    },
    movable(name) {
      const port = kinds.find(({ kind }) => kind === name)?.port;
      return { imports: [programPath("testing/time/moved-time")], env: { [CLOCK_VARIABLE]: `${port}` } };
    },
    async move(ms) {
      ahead += ms;
      for (const [i, { followers }] of kinds.entries()) {
        await Promise.all([...followers.values()].map((notify) => notify(ahead)));
        if (i === 0) await notifyOtherInTime(ahead);
      }
    },
    async [Symbol.asyncDispose]() {
      for (const { server, followers } of kinds) {
        for (const socket of followers.keys()) socket.destroy();
        await new Promise((resolve) => server.close(resolve));
      }
    },
  };
}

interface FollowerKind {
  kind: string;
  port: number;
  server: Server;
  followers: ReadonlyMap<Socket, Notify>;
}

/** Accepts the connections of the processes of a kind, which follow the time. */
async function listenFor(kind: string, ahead: () => number, timeout: number): Promise<FollowerKind> {
  const followers = new Map<Socket, Notify>();
  const server = createServer((socket) => {
    // A process answers each line, in order.
    const pending: (() => void)[] = [];
    const notify: Notify = (to) =>
      new Promise<void>((resolve) => {
        pending.push(resolve);
        socket.write(`${to}\n`);
      });
    followers.set(socket, withTimeout(notify, timeout));
    socket.on("error", () => {}); // The process was killed; "close" follows.
    socket.on("close", () => {
      followers.delete(socket);
      for (const resolve of pending) resolve();
    });
    createInterface({ input: socket })
      .on("line", () => pending.shift()?.())
      .on("error", () => {});
    void notify(ahead());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  return { kind, port, server, followers };
}

/** Waits for `notify` at most `ms` milliseconds, and not at all while an earlier call has not finished. */
function withTimeout(notify: Notify, ms: number): Notify {
  let isLate = false;
  return async (ahead) => {
    const notification = notify(ahead).finally(() => {
      isLate = false;
    });
    notification.catch(() => {}); // It may fail when nobody waits for it.
    if (isLate) return;
    const cancellation = new AbortController();
    const deadline = sleep(ms, undefined, { signal: cancellation.signal }).then(() => {
      isLate = true;
    });
    deadline.catch(() => {});
    await Promise.race([notification, deadline]).finally(() => cancellation.abort());
  };
}
