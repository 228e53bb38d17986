/** Transports to a wrapped server, and the log of a program's stderr. */
import type { Readable } from "node:stream";
import {
  type JSONRPCMessage,
  SdkErrorCode,
  SdkHttpError,
  StreamableHTTPClientTransport,
  type Transport,
} from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { Log } from "../../../core/author/index.ts";
import type { Fetch } from "../../../worker/connection/index.ts";
import { MAX_MESSAGE_BYTES } from "../host/host-config.ts";
import type { HostedProgram } from "../host/host-connection.ts";
import { HostedTransport } from "../host/hosted-transport.ts";
import type { Session } from "../host/open-request.ts";
import { ProgramIds } from "../host/program-ids.ts";
import { MessageBuffer, readableResponse } from "./readable-messages.ts";

/** How much of a line is logged. */
export const MAX_LINE_CHARACTERS = 500;
/** How many lines of each level are logged in a second. */
const MAX_LINES_PER_SECOND = 20;

/** How to reach a server, with all variables filled in. */
export type Target = { url: URL; headers: Record<string, string>; fetch: Fetch } | ProgramTarget;

interface ProgramTarget extends Omit<HostedProgram, "keep" | "deployment"> {
  /** How the program outlives its worker; undefined if it does not. */
  hosting: Pick<HostedProgram, "keep" | "deployment"> | undefined;
}

/** A transport to the server, not started yet. @throws {Error} saying why a program does not start */
export async function transportOf(target: Target): Promise<Transport> {
  if ("url" in target) return httpTransport(target);
  const { hosting, command, args, env, cwd } = target;
  if (hosting) return HostedTransport.use({ command, args, env, cwd, ...hosting });
  const transport = new StdioClientTransport({ command, args: [...args], env, cwd, stderr: "pipe" });
  const ids = new ProgramIds();
  const send = transport.send.bind(transport);
  return Object.assign(transport, {
    _readBuffer: new MessageBuffer(MAX_MESSAGE_BYTES, ids),
    send: (message: JSONRPCMessage) => send(ids.outward(message)),
  });
}

/**
 * A transport for one request in its session; undefined if the connection's own transport serves it, which goes to the program
 * host `ownHost`.
 */
export function transportFor(target: Target, session: Session, ownHost: string | undefined): Transport | undefined {
  if ("url" in target) return httpTransport(target, session);
  const { sessionId = ownHost } = session;
  return sessionId === undefined || sessionId === ownHost ? undefined : new HostedTransport(sessionId);
}

function httpTransport(
  { url, headers, fetch }: Extract<Target, { url: URL }>,
  session: Session = {},
): StreamableHTTPClientTransport {
  // The SDK's transport would wait for a stream of a server that resumes none.
  const resumableFetch: Fetch = async (url, init) => {
    const response = await fetch(url, init);
    const { status, statusText } = response;
    const isStream = /^text\/event-stream\b/i.test(response.headers.get("content-type") ?? "");
    if (init?.method !== "POST" || isStream) transportsWithStreams.add(transport);
    if (status !== 405 || !new Headers(init?.headers).has("last-event-id")) return readableResponse(response);
    await response.text().catch(() => {});
    throw new SdkHttpError(SdkErrorCode.ClientHttpFailedToOpenStream, statusText, { status });
  };
  const options = { fetch: resumableFetch, requestInit: { headers }, ...session };
  const transport = new StreamableHTTPClientTransport(url, options);
  return transport;
}

/** The HTTP transports whose server has opened a stream, over which an answer may still come. */
const transportsWithStreams = new WeakSet<Transport>();

/**
 * Whether no answer will come to a request that the transport alone serves and has sent: the SDK has then passed on all messages of
 * the response, or the status says that there is none (202).
 */
export const isAnsweredWithout = (transport: Transport): boolean =>
  transport instanceof StreamableHTTPClientTransport && !transportsWithStreams.has(transport);

/** The log for one connection, with a limit, because the server decides how many lines there are. */
export function limitLog(log: Log): Log {
  const level = (name: keyof Log): Log[keyof Log] => {
    let second = 0;
    let count = 0;
    return (message, fields) => {
      const now = Math.floor(Date.now() / 1_000);
      if (now !== second) [second, count] = [now, 0];
      if (++count <= MAX_LINES_PER_SECOND) log[name](message, fields);
    };
  };
  return { debug: level("debug"), info: level("info"), warn: level("warn"), error: level("error") };
}

/** Logs a program's stderr; the returned function gives the last line. */
export function logLines(stderr: Readable | null, log: Log): () => string {
  let rest = "";
  let last = "";
  stderr?.setEncoding("utf8").on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = (lines.pop() ?? "").slice(0, MAX_LINE_CHARACTERS);
    for (const line of lines) {
      if (line.trim() === "") continue;
      last = line.trim().slice(0, MAX_LINE_CHARACTERS);
      log.info("wrapped server says", { says: last });
    }
  });
  return () => (rest.trim() === "" ? last : rest.trim());
}
