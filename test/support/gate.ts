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
  /** Neither passes on nor answers calls of a kind until `release`. Resolves when the first is there. */
  hold(kind: string): Promise<void>;
  /** Passes calls of a kind on again; those held back stay unanswered. */
  release(kind: string): void;
  /** What the server has answered so far, in order. */
  readonly calls: readonly Call[];
  /** The event streams: how many are open now, and how many there were in all. */
  readonly streams: { readonly open: number; readonly opened: number };
  /** Ends the event streams that are open. */
  cutStreams(): void;
  /** Answers new event streams with 503, as a server does that has too many, until told otherwise. */
  refuseStreams(refuse: boolean): void;
}

/** A call's kind, and the id of the promise or task it names. */
interface Call {
  kind: string;
  id: string | undefined;
}

export async function startGate(target: string): Promise<Gate> {
  const lost = new Map<string, () => void>();
  const held = new Map<string, () => void>();
  const calls: Call[] = [];
  const streams = new Set<ServerResponse>();
  let opened = 0;
  let refusing = false;
  const server = createServer((req, res) => void pass(req, res).catch(() => req.socket.resetAndDestroy()));

  async function pass(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const body = await text(req);
    const { kind = "", data } = body === "" ? {} : JSON.parse(body);
    const hold = held.get(kind);
    if (hold) return hold();
    const isStream = req.url?.startsWith("/poll/");
    if (isStream && refusing) return void res.writeHead(503).end();
    const gone = new AbortController();
    res.on("close", () => gone.abort());
    const { host: _host, connection: _connection, "content-length": _length, ...headers } = req.headers;
    const answer = await fetch(target + req.url, {
      method: req.method ?? "GET",
      headers: headers as Record<string, string>,
      signal: gone.signal,
      ...(body !== "" && { body }),
    });
    if (kind) calls.push({ kind, id: data?.id ?? data?.awaited });
    const lose = lost.get(kind);
    if (lose) {
      lost.delete(kind);
      await answer.text();
      req.socket.resetAndDestroy();
      return lose();
    }
    if (isStream) {
      opened += 1;
      streams.add(res);
      res.on("close", () => streams.delete(res));
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
    release: (kind) => void held.delete(kind),
    calls,
    streams: {
      get open() {
        return streams.size;
      },
      get opened() {
        return opened;
      },
    },
    cutStreams: () => {
      for (const stream of streams) stream.destroy();
    },
    refuseStreams: (refuse) => {
      refusing = refuse;
    },
    [Symbol.asyncDispose]: close,
  };
}
