/** The reasons why a request to a wrapped server has no result. */
import { INTERNAL_ERROR, SdkHttpError } from "@modelcontextprotocol/client";
import { PrivateAddress } from "../../../features/files/public-fetch.ts";

/** The request has not reached the server. It may be sent again, even if it is not repeatable. */
export class NotSent extends Error {
  override name = "NotSent";
}

/** The request was not sent, and trying again cannot help: the configuration is wrong, or this side refuses it. */
export class Unsendable extends NotSent {
  override name = "Unsendable";
}

/** The server, or a proxy before it, has refused the request, and so has not executed it. */
export class CallRefused extends Error {
  override name = "Refused";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }

  /** Whether the same request may be accepted later. */
  get isTemporary(): boolean {
    return [409, 425, 429].includes(this.status);
  }
}

/** The request was sent and no answer will come: it is unknown whether the server has executed it. */
export class AnswerLost extends Error {
  override name = "AnswerLost";
}

/** The request was sent, and its outcome can no longer be found out. */
export class OutcomeUnknown extends Error {
  override name = "OutcomeUnknown";
}

/** The server's answer is a protocol error. */
export class RpcError extends Error {
  override name = "RpcError";
  readonly code: number;
  readonly data: unknown;

  /** `error`: the error object as the server sent it. */
  constructor(error: unknown) {
    const { code, message, data } = Object(error);
    super(String(message ?? "it answered with an error without a message"));
    this.code = Number.isSafeInteger(code) ? code : INTERNAL_ERROR;
    this.data = data;
  }
}

/** How much of a page is read, in characters. The time to find its sections without an end grows with the square of this. */
const MAX_PAGE = 10_000;

/** Describes an answer outside the protocol, by a server or a proxy before it. Of an HTML page only the text is kept. */
function answered({ status = 0, message }: SdkHttpError): string {
  const page = [/<body\b/i, /<(!doctype|html)/i].map((pattern) => message.search(pattern)).find((at) => at >= 0);
  const text = message
    .slice(page ?? 0)
    .slice(0, MAX_PAGE)
    .replace(page === undefined ? /^$/ : /<(head|style|script)\b.*?<\/\1>|<[^<>]*>|[<>]/gis, " ")
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim()
    .slice(0, 200);
  return `it answered ${status}${text === "" ? "" : `: ${text}`}`;
}

/** {@link answered} for a connection that could not be opened, with advice. */
export function notOpened(error: SdkHttpError): string {
  if (error.status !== 404 && error.status !== 405) return answered(error);
  return `${answered(error)}. Give the URL of its streamable HTTP endpoint, often /mcp; the older transport, HTTP with SSE alone, is not supported`;
}

/** Classifies the error of sending a request. */
export function classified(error: unknown): Error {
  if (error instanceof OutcomeUnknown) return error;
  if (error instanceof SdkHttpError) {
    const { status = 0 } = error;
    const reason = answered(error);
    // A server may answer 408 because a tool took too long.
    const isRefused = status >= 400 && status < 500 && status !== 408;
    return isRefused ? new CallRefused(status, reason) : new AnswerLost(reason);
  }
  const cause = (error as { cause?: { code?: unknown; message?: string } } | undefined)?.cause;
  const code = String(cause?.code ?? (error as { code?: unknown })?.code ?? "");
  // The same codes come from an open connection that breaks, whose requests the server may have. If a host has several addresses,
  // the error holds one for each.
  const failures = cause instanceof AggregateError ? cause.errors : [cause ?? error];
  const isConnecting = failures.every((each) => each?.syscall === "connect");
  if (isConnecting || /^(ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT|NOT_?CONNECTED)$/i.test(code)) {
    return new NotSent(code);
  }
  if (error instanceof PrivateAddress) return new NotSent(error.message);
  return new AnswerLost(cause?.message ?? (error instanceof Error ? error.message : String(error)));
}

/** The connection could not be opened. The message ends with what the program wrote; the cause is the error without that. */
export class OpenFailed extends Error {
  override name = "OpenFailed";

  constructor(cause: Error, written: string) {
    super(`${cause.message}; it wrote: ${written}`, { cause });
  }
}

/**
 * Whether an error's message says that the server sent a message that was too long. There is only the message: the SDK passes
 * on neither the error of a stream nor a class of its own.
 */
export const isTooLong = (message: string): boolean => /(?:more than|maximum size of) \d+ bytes/.test(message);
