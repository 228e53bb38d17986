import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";

/** An address that stays while the process behind it is replaced. */
export interface Front {
  /** Sends requests from now on to a port of this machine; those under way stay where they are. */
  to(port: number): void;
  close(): void;
}

const HOST = "127.0.0.1";

/**
 * Listens on an address and passes each request on, unchanged, to the port that `to` named last; until it has named one,
 * requests wait.
 */
export async function openFront(host: string, port: number): Promise<Front> {
  const first = Promise.withResolvers<void>();
  let target = 0;
  const server = createServer(async (req, res) => {
    await first.promise;
    pass(req, res, target);
  });
  server.requestTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  return {
    to(port) {
      target = port;
      first.resolve();
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function pass(req: IncomingMessage, res: ServerResponse, port: number): void {
  // A connection of its own: one that was kept open would be to a process that is about to end.
  const headers = [...endToEnd(req.rawHeaders), "Connection", "close"];
  const onward = request({ host: HOST, port, method: req.method, path: req.url, headers, agent: false });
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
  // Whoever leaves must be seen to leave.
  res.on("close", () => onward.destroy());
  req.pipe(onward);
}

/** The headers that are not about one connection. */
function endToEnd(headers: readonly string[]): string[] {
  return headers.filter((_, i) => !/^(connection|keep-alive)$/i.test(headers[i - (i % 2)] ?? ""));
}
