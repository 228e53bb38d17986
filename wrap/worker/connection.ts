/**
 * One connection to a wrapped server. The SDK's client makes it and keeps it; calls go over it as they are, message by
 * message, because what the server answers is passed on as it is: nothing that the SDK does not know gets lost, and a
 * question, an answer or a task is seen for what it is.
 */
import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  Client,
  type JSONRPCMessage,
  LATEST_PROTOCOL_VERSION,
  PROTOCOL_VERSION_META_KEY,
  RELATED_TASK_META_KEY,
  SdkHttpError,
  StreamableHTTPClientTransport,
  type Transport,
} from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { Log } from "../../core/durable/context.ts";
import type { ListedTool } from "../snapshot.ts";
import { CallRefused, Lost, NotSent, RpcError } from "./errors.ts";
import type { Fetch } from "./guarded-fetch.ts";

/** The revision with a per-request envelope. */
const MODERN = "2026-07-28";
export const TASKS = "io.modelcontextprotocol/tasks";

/** What is said of this client to servers: it can put questions to people, and it knows tasks. */
const INFO = { name: "durable-mcp-edge", version: "1" };
const CAPABILITIES = { elicitation: { form: {} }, extensions: { [TASKS]: {} } };

/** The longest message of a program, in bytes, and how much of a line that it writes beside is logged. */
const MAX_MESSAGE = 8_000_000;
const MAX_LINE = 500;
/** How many of those lines are logged in a second. */
const MAX_LINES = 20;

/** How a server is reached, all values filled in. */
export type Target =
  | { url: URL; headers: Record<string, string>; fetch: Fetch }
  | { command: string; args: readonly string[]; env: Record<string, string>; cwd: string | undefined };

export type Era = "modern" | "legacy";

/** A question as a server puts it in the middle of a call. */
export interface Asked {
  /** The id of the server's request. */
  id: string | number;
  params: Record<string, unknown>;
  /** Answers it; the result is an `ElicitResult`. */
  answer(result: Record<string, unknown>): void;
}

/** What is of interest while a request is under way. */
export interface Exchange {
  onProgress?(progress: { progress: number; total?: number; message?: string }): void;
  onAsked?(asked: Asked): void;
  /** The stream of the answer can be picked up from here. */
  onEventId?(id: string): void;
  /** The task of the 2025-11-25 revision whose questions belong to it. */
  task?: string;
}

export interface Under {
  /** Rejects with {@link NotSent}, {@link CallRefused}, {@link Lost} or {@link RpcError}. */
  readonly result: Promise<Record<string, unknown>>;
  /** Tells the server that nobody waits for the answer any more. */
  cancel(reason: string): void;
  /** Nobody here waits for the answer any more; the server is not told. */
  leave(): void;
}

/** How the stream of an answer can be picked up. */
export interface Resumable {
  session: string;
  request: string;
  event: string;
  revision: string;
}

export interface Session {
  sessionId?: string;
  protocolVersion?: string;
}

interface Waiting extends Exchange {
  resolve(result: Record<string, unknown>): void;
  reject(error: Error): void;
}

type Incoming = JSONRPCMessage & {
  id?: string | number;
  method?: string;
  params?: Record<string, unknown>;
  result?: Record<string, unknown>;
  error?: { code: number; message: string };
};

export interface ConnectionOptions {
  target: Target;
  log: Log;
  /** The agreed revision of an earlier connection, where it is known: a program need not be started twice to find out. */
  revision?: string | undefined;
  onToolsChanged?(): void;
  /** In milliseconds. */
  timeout: number;
}

/** The id of a request, which no other has. */
export const requestId = (): string => `wrapped-${crypto.randomUUID()}`;

export class Connection {
  readonly client: Client;
  readonly #target: Target;
  readonly #log: Log;
  #transport: Transport;
  #waiting = new Map<string, Waiting>();
  #isOpen = true;
  /** The tools as they were when it was opened, or when they had changed since. */
  tools: readonly ListedTool[] = [];
  /** Resolves when it is over. */
  readonly closed: Promise<void>;

  private constructor(client: Client, transport: Transport, target: Target, log: Log) {
    this.client = client;
    this.#transport = transport;
    this.#target = target;
    this.#log = log;
    const closed = Promise.withResolvers<void>();
    this.closed = closed.promise;
    client.onclose = () => {
      this.#isOpen = false;
      for (const waiting of this.#waiting.values()) waiting.reject(new Lost("the connection to the server was lost"));
      this.#waiting.clear();
      closed.resolve();
    };
    client.onerror = (error) => log.debug("wrapped server", { reason: error.message });
  }

  /** @throws {Error} saying why it cannot be reached */
  static async open({ target, log, revision, onToolsChanged, timeout }: ConnectionOptions): Promise<Connection> {
    const client = new Client(INFO, {
      capabilities: CAPABILITIES,
      versionNegotiation: { mode: revision !== undefined && revision < MODERN ? "legacy" : "auto" },
      ...(onToolsChanged && { listChanged: { tools: { autoRefresh: false, onChanged: () => onToolsChanged() } } }),
    });
    const transport = transportOf(target);
    const lastLine = transport instanceof StdioClientTransport ? logLines(transport, log) : () => "";
    const connection = new Connection(client, transport, target, log);
    try {
      await client.connect(transport, { timeout });
    } catch (error) {
      await client.close().catch(() => {});
      // A program that does not start says why in words of its own.
      const said = lastLine();
      if (said === "") throw error;
      throw new Error(`${(error as Error).message}; it wrote: ${said}`, { cause: error });
    }
    connection.#listen(transport);
    return connection;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get era(): Era {
    return this.client.getProtocolEra() === "modern" ? "modern" : "legacy";
  }

  get revision(): string {
    return this.client.getNegotiatedProtocolVersion() ?? LATEST_PROTOCOL_VERSION;
  }

  /** What tells this connection's state at the server, where it keeps one. */
  get sessionId(): string | undefined {
    return this.#transport.sessionId;
  }

  get pid(): number | undefined {
    return this.#transport instanceof StdioClientTransport ? (this.#transport.pid ?? undefined) : undefined;
  }

  close(): Promise<void> {
    return this.client.close();
  }

  /** Sends a request; `id` is one that no other has, `place` the session that it belongs to, if not this one. */
  request(
    method: string,
    params: Record<string, unknown>,
    exchange: Exchange = {},
    id = requestId(),
    place?: Session,
  ): Under {
    const meta = { ...this.#envelope(), ...(exchange.onProgress && { progressToken: id }) };
    const given = params._meta as Record<string, unknown> | undefined;
    const _meta = { ...given, ...meta };
    const whole = { ...params, ...(Object.keys(_meta).length > 0 && { _meta }) };
    const message = { jsonrpc: "2.0" as const, id, method, params: whole } as JSONRPCMessage;
    return this.#exchange(id, exchange, (transport, options) => transport.send(message, options), place);
  }

  /** Answers a request of the server's that came to another process, in the session that it came in. */
  async respond(place: Session, id: string | number, result: Record<string, unknown>): Promise<void> {
    const transport = this.#ownTransport(`${id}`, place);
    if (transport !== this.#transport) await transport.start();
    await transport.send({ jsonrpc: "2.0", id, result } as JSONRPCMessage);
  }

  /** Picks up the stream of an answer to a request that was sent in another session, by another process. */
  resume({ request, event, session, revision }: Resumable, exchange: Exchange): Under {
    const place = { sessionId: session, protocolVersion: revision };
    return this.#exchange(
      request,
      exchange,
      (transport) => {
        transport.onerror = ({ message }) => {
          if (/^Maximum reconnection/.test(message)) this.#waiting.get(request)?.reject(new Lost(message));
        };
        const onresumptiontoken = (token: string) => exchange.onEventId?.(token);
        return (transport as StreamableHTTPClientTransport).resumeStream(event, { onresumptiontoken });
      },
      place,
    );
  }

  #exchange(
    id: string,
    exchange: Exchange,
    send: (transport: Transport, options: Parameters<Transport["send"]>[1]) => Promise<void>,
    place?: Session,
  ): Under {
    const answer = Promise.withResolvers<Record<string, unknown>>();
    answer.promise.catch(() => {});
    if (!this.#isOpen) {
      answer.reject(new NotSent("the connection to the server was lost"));
      return { result: answer.promise, cancel: () => {}, leave: () => {} };
    }
    const abort = new AbortController();
    const transport = this.#ownTransport(id, place);
    const done = () => {
      this.#waiting.delete(id);
      // A transport of its own is of no use any more; what it still holds open is closed.
      if (transport !== this.#transport) void transport.close().catch(() => {});
    };
    this.#waiting.set(id, {
      ...exchange,
      resolve: (result) => {
        answer.resolve(result);
        done();
      },
      reject: (error) => {
        answer.reject(error);
        done();
      },
    });
    const options = {
      requestSignal: abort.signal,
      ...(exchange.onEventId && { onresumptiontoken: (token: string) => exchange.onEventId?.(token) }),
      onRequestStreamEnd: () => this.#waiting.get(id)?.reject(new Lost("the server ended the connection")),
    };
    const sending = async () => {
      if (transport !== this.#transport) await transport.start();
      await send(transport, options);
    };
    sending().catch((error) => this.#waiting.get(id)?.reject(classified(error)));
    return {
      result: answer.promise,
      leave: () => {
        if (!this.#waiting.has(id)) return;
        abort.abort();
        this.#waiting.get(id)?.reject(new Lost("nobody waits for it any more"));
      },
      cancel: (reason) => {
        if (!this.#waiting.has(id)) return;
        const params = { requestId: id, reason, ...(this.era === "modern" && { _meta: this.#envelope() }) };
        const told = { jsonrpc: "2.0" as const, method: "notifications/cancelled", params } as JSONRPCMessage;
        // To a server of 2026 over HTTP the end of the request says it.
        const isSaid = this.era === "modern" && transport.hasPerRequestStream === true;
        const saying = isSaid ? Promise.resolve() : transport.send(told).catch(() => {});
        void saying.then(() => {
          abort.abort();
          this.#waiting.get(id)?.reject(new Lost(`it was cancelled: ${reason}`));
        });
      },
    };
  }

  /** Over HTTP each request has a transport of its own, within one session: what comes over it belongs to that request. */
  #ownTransport(id: string, place: Session = this.place): Transport {
    if (!("url" in this.#target)) return this.#transport;
    const transport = httpTransport(this.#target, place);
    this.#listen(transport, id);
    return transport;
  }

  /** The session that requests belong to. */
  get place(): Session {
    const { sessionId } = this.#transport;
    return {
      ...(sessionId !== undefined && { sessionId }),
      ...(this.era === "legacy" && { protocolVersion: this.revision }),
    };
  }

  #envelope(): Record<string, unknown> {
    if (this.era === "legacy") return {};
    return {
      [PROTOCOL_VERSION_META_KEY]: this.revision,
      [CLIENT_INFO_META_KEY]: INFO,
      [CLIENT_CAPABILITIES_META_KEY]: CAPABILITIES,
    };
  }

  /** Takes what belongs to requests from what comes over a transport; the rest is the client's. */
  #listen(transport: Transport, owner?: string): void {
    const others = transport.onmessage ?? this.#transport.onmessage;
    transport.onmessage = (message, extra) => {
      if (!this.#take(message as Incoming, transport, owner)) others?.(message, extra);
    };
  }

  #take(message: Incoming, transport: Transport, owner: string | undefined): boolean {
    const { id, method, params = {} } = message;
    if (method === undefined) {
      const waiting = typeof id === "string" ? this.#waiting.get(id) : undefined;
      if (!waiting) return false;
      if (message.error) waiting.reject(new RpcError(message.error.code, message.error.message));
      else waiting.resolve(message.result ?? {});
      return true;
    }
    if (id !== undefined) return this.#asked(message, transport, owner);
    if (method === "notifications/progress") {
      const waiting = this.#waiting.get(String(params.progressToken));
      waiting?.onProgress?.(params as unknown as { progress: number });
      return waiting !== undefined;
    }
    if (method === "notifications/message") {
      const text = typeof params.data === "string" ? params.data : JSON.stringify(params.data);
      this.#log.info("wrapped server says", { level: params.level, says: String(text).slice(0, MAX_LINE) });
      return true;
    }
    return false;
  }

  /** The calls that a question may belong to. */
  #askers(owner: string | undefined, params: Record<string, unknown>): Waiting[] {
    const asked = [...this.#waiting.entries()].filter(([, { onAsked }]) => onAsked !== undefined);
    const task = taskOf(params);
    const fits = asked.filter(([id, waiting]) =>
      task === undefined ? owner === undefined || id === owner : waiting.task === task,
    );
    return fits.map(([, waiting]) => waiting);
  }

  /** A request of the server's. */
  #asked({ id, method, params = {} }: Incoming, transport: Transport, owner: string | undefined): boolean {
    if (method === "ping") return false;
    const say = (answer: object) =>
      void transport.send({ jsonrpc: "2.0", id, ...answer } as JSONRPCMessage).catch(() => {});
    const refuse = (message: string) => {
      this.#log.warn("wrapped server is refused", { method, reason: message });
      say({ error: { code: -32601, message } });
    };
    if (method !== "elicitation/create") {
      refuse(`durable-mcp-edge offers no ${method}: only questions of the form mode are passed on`);
    } else if (params.mode !== undefined && params.mode !== "form") {
      refuse("durable-mcp-edge passes on questions of the form mode only");
    } else {
      // Over stdio nothing says which call a question belongs to, and it must not reach another call's caller.
      const calls = this.#askers(owner, params);
      const [call] = calls;
      // A stream that is picked up may tell what other calls were asked.
      if (!call && taskOf(params) !== undefined) return true;
      if (!call?.onAsked || calls.length > 1) refuse("durable-mcp-edge cannot tell which of several calls asks");
      else call.onAsked({ id: id ?? "", params, answer: (result) => say({ result }) });
    }
    return true;
  }
}

/** The task that a question of a server's belongs to, where that is said. */
function taskOf({ _meta }: Record<string, unknown>): string | undefined {
  const related = (_meta as Record<string, { taskId?: unknown }> | undefined)?.[RELATED_TASK_META_KEY]?.taskId;
  return typeof related === "string" ? related : undefined;
}

function transportOf(target: Target): Transport {
  if ("url" in target) return httpTransport(target);
  const { command, args, env, cwd } = target;
  return new StdioClientTransport({
    command,
    args: [...args],
    env,
    stderr: "pipe",
    maxBufferSize: MAX_MESSAGE,
    ...(cwd !== undefined && { cwd }),
  });
}

function httpTransport(
  { url, headers, fetch }: Extract<Target, { url: URL }>,
  more: Session = {},
): StreamableHTTPClientTransport {
  return new StreamableHTTPClientTransport(url, { fetch, requestInit: { headers }, ...more });
}

/** Writes what a program says beside the protocol to the worker's log, up to a bound; what is returned tells the last of it. */
function logLines(transport: StdioClientTransport, log: Log): () => string {
  let second = 0;
  let count = 0;
  let rest = "";
  let last = "";
  transport.stderr?.on("data", (chunk: Buffer) => {
    const lines = (rest + chunk.toString("utf8")).split("\n");
    rest = (lines.pop() ?? "").slice(0, MAX_LINE);
    for (const line of lines) {
      const now = Math.floor(Date.now() / 1_000);
      if (now !== second) [second, count] = [now, 0];
      if (line.trim() === "" || ++count > MAX_LINES) continue;
      last = line.trim().slice(0, MAX_LINE);
      log.info("wrapped server says", { says: last });
    }
  });
  return () => (rest.trim() === "" ? last : rest.trim());
}

/** Why a request could not be sent, as far as that can be known. */
function classified(error: unknown): Error {
  if (error instanceof SdkHttpError) {
    const { status = 0 } = error;
    const reason = `it answered ${status}${error.message ? `: ${error.message.slice(0, 200)}` : ""}`;
    if (status >= 400 && status < 500) return new CallRefused(status, reason);
    return new Lost(reason);
  }
  const cause = (error as { cause?: { code?: unknown; message?: string } } | undefined)?.cause;
  const code = String(cause?.code ?? (error as { code?: unknown })?.code ?? "");
  // The connection was not made, so nothing went over it.
  if (
    /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|NotConnected)$/i.test(code)
  ) {
    return new NotSent(code);
  }
  if ((cause as Error | undefined)?.constructor?.name === "PrivateAddress") return new NotSent(String(cause?.message));
  return new Lost(cause?.message ?? (error instanceof Error ? error.message : String(error)));
}
