import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";

/** A proxy before a Resonate server with which a test can part a process from it, wholly or call by call. */
export interface Gate extends AsyncDisposable {
  readonly url: string;
  /** Resets every connection and refuses new ones. */
  close(): Promise<void>;
  /** Lets connections through again, at the same address. */
  open(): Promise<void>;
  /** Passes the next call of a kind on, but resets the connection instead of answering. Resolves when that is done. */
  loseAnswer(kind: string): Promise<void>;
  /** Neither passes on nor answers calls of a kind from now on. Resolves when the first is there. */
  hold(kind: string): Promise<void>;
}

export async function startGate(target: string): Promise<Gate> {
  const lost = new Map<string, () => void>();
  const held = new Map<string, () => void>();
  const server = createServer((req, res) => void pass(req, res).catch(() => req.socket.resetAndDestroy()));

  async function pass(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const body = await text(req);
    const kind = body === "" ? "" : JSON.parse(body).kind;
    const hold = held.get(kind);
    if (hold) return hold();
    const gone = new AbortController();
    res.on("close", () => gone.abort());
    const { host: _host, connection: _connection, "content-length": _length, ...headers } = req.headers;
    const answer = await fetch(target + req.url, {
      method: req.method ?? "GET",
      headers: headers as Record<string, string>,
      signal: gone.signal,
      ...(body !== "" && { body }),
    });
    const lose = lost.get(kind);
    if (lose) {
      lost.delete(kind);
      await answer.text();
      req.socket.resetAndDestroy();
      return lose();
    }
    res.writeHead(answer.status, { "Content-Type": answer.headers.get("Content-Type") ?? "application/json" });
    res.flushHeaders();
    for await (const chunk of answer.body ?? []) res.write(chunk);
    res.end();
  }

  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  await listen(0);
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  const close = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  };
  return {
    url: `http://127.0.0.1:${port}`,
    close,
    open: () => listen(port),
    loseAnswer: (kind) => new Promise((resolve) => lost.set(kind, resolve)),
    hold: (kind) => new Promise((resolve) => held.set(kind, resolve)),
    [Symbol.asyncDispose]: close,
  };
}
