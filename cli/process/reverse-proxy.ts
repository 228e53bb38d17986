import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from "node:http";

/** An address that stays the same while the process behind it is replaced. */
export interface ReverseProxy {
  /** Forwards new requests to a port of this machine; requests under way stay where they are. */
  forwardTo(port: number): void;
  close(): void;
}

const HOST = "127.0.0.1";

/** How long an idle connection is kept, in milliseconds: less than the process behind keeps it. */
const KEPT = 2_000;

/** A process behind, and the connections to it. */
interface Target {
  port: number;
  agent: Agent;
}

/** Listens on an address and forwards each request unchanged; requests wait until `forwardTo` names the first port. */
export async function openReverseProxy(host: string, port: number): Promise<ReverseProxy> {
  const first = Promise.withResolvers<void>();
  let target: Target | undefined;
  const server = createServer(async (req, res) => {
    await first.promise;
    if (target) forward(req, res, target);
  });
  server.requestTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  return {
    forwardTo(port) {
      target = { port, agent: new Agent({ keepAlive: true, timeout: KEPT }) };
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

/** Removes the headers of a single connection. */
function endToEnd(headers: readonly string[]): string[] {
  return headers.filter((_, i) => !/^(connection|keep-alive)$/i.test(headers[i - (i % 2)] ?? ""));
}
