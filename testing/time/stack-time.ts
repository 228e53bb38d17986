/** The time of a stack's processes, which the test moves. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer, type Socket } from "node:net";
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

/** How long the time waits for a process to follow, in real milliseconds. */
const PATIENCE = 5_000;

/**
 * `order` lists the kinds of processes in the order in which they follow; `also` is called after the first kind has followed.
 * A process that is stopped or blocked holds the time up once, for `patience` milliseconds, and follows when it goes on.
 */
export async function startTime(
  order: readonly string[],
  also: (ahead: number) => Promise<void>,
  patience = PATIENCE,
): Promise<Time> {
  let ahead = 0;
  const tellAlso = patient(also, patience);
  const kinds = await Promise.all(
    order.map(async (kind) => {
      const followers = new Map<Socket, (ahead: number) => Promise<void>>();
      const server = createServer((socket) => {
        // A process answers each line, in order.
        const unanswered: (() => void)[] = [];
        const tell = (to: number) =>
          new Promise<void>((resolve) => {
            unanswered.push(resolve);
            socket.write(`${to}\n`);
          });
        followers.set(socket, patient(tell, patience));
        socket.on("error", () => {}); // The process was killed; "close" follows.
        socket.on("close", () => {
          followers.delete(socket);
          for (const resolve of unanswered) resolve();
        });
        createInterface({ input: socket })
          .on("line", () => unanswered.shift()?.())
          .on("error", () => {});
        void tell(ahead);
      });
      await once(server.listen(0, "127.0.0.1"), "listening");
      const { port } = server.address() as AddressInfo;
      return { kind, port, server, followers };
    }),
  );
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
        await Promise.all([...followers.values()].map((tell) => tell(ahead)));
        if (i === 0) await tellAlso(ahead);
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

/** Waits for `tell` at most `ms` milliseconds, and not at all while an earlier call has not ended. */
function patient(tell: (ahead: number) => Promise<void>, ms: number): (ahead: number) => Promise<void> {
  let isLate = false;
  return async (ahead) => {
    const told = tell(ahead).finally(() => {
      isLate = false;
    });
    told.catch(() => {}); // It may fail when nobody waits any more.
    if (isLate) return;
    const over = new AbortController();
    const late = sleep(ms, undefined, { signal: over.signal }).then(() => {
      isLate = true;
    });
    late.catch(() => {});
    await Promise.race([told, late]).finally(() => over.abort());
  };
}
