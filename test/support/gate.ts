import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { LINES } from "../../core/store/connection/batch-lines.ts";

/** A proxy before a Resonate server with which a test can part a process from it, wholly or call by call. */
export interface Gate extends AsyncDisposable {
  readonly url: string;
  /** Resets every connection and refuses new ones. */
  close(): Promise<void>;
  /** Lets connections through again, at the same address. */
  open(): Promise<void>;
  /** Passes the next call of a kind on, but resets the connection instead of answering. Resolves when that is done. */
  loseAnswer(kind: string): Promise<void>;
  /**
   * Neither passes on nor answers calls of a kind until `release`: those about ids that begin with `of`, but for so many that
   * come `first`. Resolves when the first one is held.
   */
  hold(kind: string, options?: { of?: string; first?: number }): Promise<void>;
  /** Answers calls of a kind itself with the status that `decide` says, as another version of the server may. */
  refuse(kind: string, decide: (data: Record<string, unknown>) => number | undefined): void;
  /** Passes calls of a kind on again; those held back stay unanswered. */
  release(kind: string): void;
  /** How many calls have been held back so far. */
  readonly held: number;
  /** How many requests that are neither calls nor event streams have been passed on. */
  readonly others: number;
  /** What the server has answered so far, in order. */
  readonly calls: readonly Call[];
  /** The event streams: how many are open now, and how many there were in all. */
  readonly streams: { readonly open: number; readonly opened: number };
  /** Ends the event streams that are open. */
  cutStreams(): void;
  /** Neither passes on nor answers new event streams, until told otherwise. */
  holdStreams(hold: boolean): void;
  /** Passes nothing on that the server pushes, as if it had dropped it, until told otherwise. */
  muteStreams(mute: boolean): void;
  /**
   * Keeps the event streams that are open now open on both sides, and passes nothing on any more: as
   * when something between the two has forgotten them without a word.
   */
  freezeStreams(): void;
  /** Answers new event streams with 503, as a server does that has too many, until told otherwise. */
  refuseStreams(refuse: boolean): void;
}

/** A call's kind, the id of the promise or task it names, and how many bytes it took there and back. */
interface Call {
  kind: string;
  id: string | undefined;
  bytes: number;
}

export async function startGate(target: string): Promise<Gate> {
  const lost = new Map<string, () => void>();
  const held = new Map<string, { of: string; first: number; resolve(): void }>();
  const refusals = new Map<string, (data: Record<string, unknown>) => number | undefined>();
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
    // It decides call by call: as a server that takes only one at a time.
    if (req.headers["content-type"] === LINES) return void res.writeHead(400).end();
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
    release: (kind) => void held.delete(kind),
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
