import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { HOST } from "./ports.ts";
import { type Service, type SupervisedService, supervise } from "./supervise.ts";

/** A service behind a reverse proxy, whose process can be replaced by one of a newer version without an interruption. */
export class ReplaceableService {
  readonly #proxy: ReverseProxy;
  readonly #say: (message: string) => void;
  #current: SupervisedService | undefined;
  /** Processes that are starting, or that were replaced and finish their requests. */
  readonly #others = new Set<SupervisedService>();

  constructor(proxy: ReverseProxy, say: (message: string) => void) {
    this.#proxy = proxy;
    this.#say = say;
  }

  /**
   * Starts a version on its own port, forwards requests to it once it is ready, and stops the previous one. With `waits`, it
   * waits until the previous one has ended. If the new version does not start, nothing changes.
   *
   * @throws {Error} with the last output of a version that does not start
   */
  async replace(service: Service, port: number, { waits = false } = {}): Promise<void> {
    // Buffered until the version is ready: if it does not start, its output is in the error instead.
    const buffer: [string, "stdout" | "stderr"][] = [];
    let onLine = (...line: (typeof buffer)[number]): void => {
      buffer.push(line);
    };
    const next = supervise({ ...service, onLine: (...line) => onLine(...line) }, this.#say, { attempts: 1 });
    this.#others.add(next);
    await Promise.race([next.ready, next.ended]).finally(() => this.#others.delete(next));
    onLine = (...line) => service.onLine?.(...line);
    for (const line of buffer) onLine(...line);
    const previous = this.#current;
    this.#current = next;
    this.#proxy.forwardTo(port);
    next.ended.catch((error: Error) => this.#say(error.message));
    if (!previous) return;
    this.#others.add(previous);
    const stop = previous.stop().finally(() => this.#others.delete(previous));
    if (waits) await stop;
  }

  /** Stops all processes, and kills those that take longer than `timeout` milliseconds. */
  async stop(timeout: number): Promise<void> {
    this.#proxy.close();
    const all = [...this.#others, ...(this.#current ? [this.#current] : [])];
    const timer = setTimeout(() => all.forEach((each) => void each.kill()), timeout);
    await Promise.all(all.map((each) => each.stop()));
    clearTimeout(timer);
  }
}

/** An address that stays the same while the process behind it is replaced. */
interface ReverseProxy {
  /** Forwards new requests to a port of this machine; requests under way stay where they are. */
  forwardTo(port: number): void;
  close(): void;
}

/** How long an idle connection to the process stays open: less than the process itself keeps it. */
const IDLE_CONNECTION_MS = 2_000;

/** The process behind the proxy, and the connections to it. */
interface Target {
  port: number;
  agent: Agent;
}

/** Listens on an address and forwards each request unchanged. Requests wait until `forwardTo` names the first port. */
export async function openReverseProxy(host: string, port: number): Promise<ReverseProxy> {
  const first = Promise.withResolvers<void>();
  let target: Target | undefined;
  const server = createServer(async (req, res) => {
    await first.promise;
    if (target) forward(req, res, target);
  });
  server.requestTimeout = 0;
  await once(server.listen(port, host), "listening");
  return {
    forwardTo(port) {
      target = { port, agent: new Agent({ keepAlive: true, timeout: IDLE_CONNECTION_MS }) };
      first.resolve();
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function forward(req: IncomingMessage, res: ServerResponse, { port, agent }: Target): void {
  const headers = endToEnd(req.rawHeaders);
  const onward = request({ host: HOST, port, method: req.method, path: req.url, headers, agent });
  onward.on("response", (answer) => {
    res.writeHead(answer.statusCode ?? 502, answer.statusMessage, endToEnd(answer.rawHeaders));
    res.flushHeaders();
    answer.on("error", () => res.destroy());
    answer.pipe(res);
  });
  onward.on("error", () => {
    if (res.headersSent) res.destroy();
    else res.writeHead(502).end("The process behind this address is starting again.\n");
  });
  // The process must notice that the client disconnected.
  res.on("close", () => onward.destroy());
  req.pipe(onward);
}

/** Removes the headers that concern a single connection. */
function endToEnd(headers: readonly string[]): string[] {
  return headers.filter((_, i) => !/^(connection|keep-alive)$/i.test(headers[i - (i % 2)] ?? ""));
}
