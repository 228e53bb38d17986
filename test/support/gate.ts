import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { NDJSON } from "../../core/resonate/connection/protocol.ts";

/** A proxy in front of a Resonate server, with which a test can cut a process off from it, completely or call by call. */
export interface Gate extends AsyncDisposable {
  readonly url: string;
  /** Resets every connection and refuses new ones. */
  close(): Promise<void>;
  /** Lets connections through again, at the same address. */
  open(): Promise<void>;
  /** Passes the next call of a kind on, but resets the connection instead of answering. Resolves after that. */
  loseAnswer(kind: string): Promise<void>;
  /**
   * Neither passes on nor answers calls of a kind until `release`, if their ids begin with `of`. Lets the first `first` of
   * these pass. Resolves when it holds a call.
   */
  hold(kind: string, options?: { of?: string; first?: number }): Promise<void>;
  /** Answers calls of a kind itself with the status from `decide`, as another version of the server may; undefined passes them on. */
  refuse(kind: string, decide: (data: Record<string, unknown>) => number | undefined): void;
  /** Passes calls of a kind on, also of one that it held or refused; those held back stay unanswered. */
  release(kind: string): void;
  /** The number of calls held back so far. */
  readonly held: number;
  /** The number of requests passed on that are neither calls nor event streams. */
  readonly others: number;
  /** The calls that the server has answered so far, in order. */
  readonly calls: readonly Call[];
  /** The numbers of event streams: now open, and opened so far. */
  readonly streams: { readonly open: number; readonly opened: number };
  /** Ends the open event streams. */
  cutStreams(): void;
  /** With true, neither passes on nor answers new event streams, until called with false. */
  holdStreams(hold: boolean): void;
  /** With true, drops everything that the server pushes, until called with false. */
  muteStreams(mute: boolean): void;
  /** Keeps the open event streams open on both sides, but passes nothing on, as if a hop in between had forgotten them. */
  freezeStreams(): void;
  /** With true, answers new event streams with 503, like a server that has too many, until called with false. */
  refuseStreams(refuse: boolean): void;
}

/** A call's kind, the id of its promise or task, and the bytes of its request and answer. */
interface Call {
  kind: string;
  id: string | undefined;
  bytes: number;
}

export async function startGate(target: string): Promise<Gate> {
  const lost = new Map<string, () => void>();
  const held = new Map<string, { of: string; first: number; resolve(): void }>();
  // Tests decide promise by promise. `release` passes requests on that read many, as the embedded server offers them.
  const refusals = new Map<string, (data: Record<string, unknown>) => number | undefined>([
    ["promise.read", () => 400],
  ]);
  const calls: Call[] = [];
  const streams = new Set<ServerResponse>();
  const frozen = new Set<ServerResponse>();
  let opened = 0;
  let heldBack = 0;
  let others = 0;
  let refusing = false;
  let holding = false;
  let muted = false;
  const server = createServer((req, res) => void pass(req, res).catch(() => req.socket.resetAndDestroy()));

  async function pass(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const body = await text(req);
    // The gate decides call by call, so it refuses batches, like a server that takes only one call at a time.
    if (req.headers["content-type"] === NDJSON) return void res.writeHead(400).end();
    const { kind = "", data } = body === "" ? {} : JSON.parse(body);
    const hold = held.get(kind);
    if (hold && String(data?.id ?? "").startsWith(hold.of) && hold.first-- <= 0) {
      heldBack += 1;
      return hold.resolve();
    }
    const status = refusals.get(kind)?.(data);
    if (status !== undefined) {
      const head = { corrId: JSON.parse(body).head.corrId, status, version: "2026-04-01" };
      return void res.writeHead(status).end(JSON.stringify({ kind, head, data: "refused" }));
    }
    const isStream = req.url?.startsWith("/poll/");
    if (!kind && !isStream) others += 1;
    if (isStream && holding) return;
    if (isStream && refusing) return void res.writeHead(503).end();
    const gone = new AbortController();
    res.on("close", () => frozen.has(res) || gone.abort());
    const { host: _host, connection: _connection, "content-length": _length, ...headers } = req.headers;
    const answer = await fetch(target + req.url, {
      method: req.method ?? "GET",
      headers: headers as Record<string, string>,
      signal: gone.signal,
      ...(body !== "" && { body }),
    });
    const call: Call = { kind, id: data?.id ?? data?.awaited, bytes: Buffer.byteLength(body) };
    if (kind) calls.push(call);
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
    for await (const chunk of answer.body ?? []) {
      call.bytes += chunk.byteLength;
      if (!(isStream && muted) && !frozen.has(res)) res.write(chunk);
    }
    if (!frozen.has(res)) res.end();
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
    hold: (kind, { of = "", first = 0 } = {}) => new Promise((resolve) => held.set(kind, { of, first, resolve })),
    refuse: (kind, decide) => void refusals.set(kind, decide),
    release(kind) {
      held.delete(kind);
      refusals.delete(kind);
    },
    calls,
    get held() {
      return heldBack;
    },
    get others() {
      return others;
    },
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
    holdStreams: (hold) => {
      holding = hold;
    },
    muteStreams: (mute) => {
      muted = mute;
    },
    freezeStreams: () => {
      for (const stream of streams) frozen.add(stream);
    },
    refuseStreams: (refuse) => {
      refusing = refuse;
    },
    [Symbol.asyncDispose]: close,
  };
}
