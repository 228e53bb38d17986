/** Reads the JavaScript heap of an edge through workerd's inspector. */
import { once } from "node:events";

export interface Heap extends Disposable {
  /** Megabytes in use after a garbage collection. The isolate runs the collection with its next request. */
  used(): Promise<number>;
}

/** Connects to the inspector of an edge, which was started with this port. */
export async function inspectHeap(port: number): Promise<Heap> {
  const [target] = (await (await fetch(`http://127.0.0.1:${port}/json`)).json()) as { webSocketDebuggerUrl: string }[];
  if (!target) throw new Error("the inspector knows no isolate");
  const socket = new WebSocket(target.webSocketDebuggerUrl);
  await once(socket, "open");
  let id = 0;
  const ask = (method: string) =>
    new Promise<{ usedSize: number }>((resolve, reject) => {
      const mine = ++id;
      const onMessage = ({ data }: MessageEvent) => {
        const answer = JSON.parse(String(data));
        if (answer.id !== mine) return;
        socket.removeEventListener("message", onMessage);
        if (answer.error) reject(new Error(`${method}: ${answer.error.message}`));
        else resolve(answer.result);
      };
      socket.addEventListener("message", onMessage);
      socket.send(JSON.stringify({ id: mine, method }));
    });
  return {
    async used() {
      await ask("HeapProfiler.collectGarbage");
      return (await ask("Runtime.getHeapUsage")).usedSize / 1e6;
    },
    [Symbol.dispose]: () => socket.close(),
  };
}
