/** The time of a stack's processes, which the test moves. */
import type { AddressInfo } from "node:net";
import { createServer, type Socket } from "node:net";
import { createInterface } from "node:readline";
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

/** `order` lists the kinds of processes in the order in which they follow; `also` is called after the first kind has followed. */
export async function startTime(order: readonly string[], also: (ahead: number) => Promise<void>): Promise<Time> {
  let ahead = 0;
  const kinds = await Promise.all(
    order.map(async (kind) => {
      const followers = new Map<Socket, () => void>();
      const server = createServer((socket) => {
        followers.set(socket, () => {});
        socket.on("error", () => {}); // The process was killed; "close" follows.
        socket.on("close", () => {
          followers.get(socket)?.();
          followers.delete(socket);
        });
        createInterface({ input: socket })
          .on("line", () => followers.get(socket)?.())
          .on("error", () => {});
        socket.write(`${ahead}\n`);
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const { port } = server.address() as AddressInfo;
      return { kind, port, server, followers };
    }),
  );
  const tell = (followers: Map<Socket, () => void>) =>
    Promise.all(
      [...followers.keys()].map(
        (socket) =>
          new Promise<void>((resolve) => {
            followers.set(socket, resolve);
            socket.write(`${ahead}\n`);
          }),
      ),
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
        await tell(followers);
        if (i === 0) await also(ahead);
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
