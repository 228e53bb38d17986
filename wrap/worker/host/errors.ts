/** The reasons why a request to a wrapped server has no result. */
import { INTERNAL_ERROR, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import { isRecord, jsonOf } from "../../../core/resonate/index.ts";
import { PrivateAddress } from "../../../worker/connection/index.ts";
import { isTooDeep } from "../protocol-values.ts";
import { MAX_MESSAGE_BYTES, TOO_DEEP } from "./host-config.ts";
import { restoredText, restoreIntegers } from "./marked-integers.ts";

/** The request has not reached the server. It may be sent again, even if it is not repeatable. */
export class NotSent extends Error {
  override name = "NotSent";
}

/** The request was not sent, and trying again cannot help: the configuration is wrong, or this side refuses it. */
export class Unsendable extends NotSent {
  override name = "Unsendable";
}

/**
 * Why a request was refused. `session`: the server has forgotten its session; `busy`: the same request may be accepted later;
 * `request`: for anything else.
 */
export type RefusalCause = "session" | "busy" | "request";

/** The server, or a proxy before it, has refused the request, and so has not executed it. */
export class CallRefused extends Error {
  override name = "CallRefused";
  readonly why: RefusalCause;

  constructor(why: RefusalCause, message: string) {
    super(message);
    this.why = why;
  }
}

export const hasLostSession = (error: unknown): boolean => error instanceof CallRefused && error.why === "session";

/** The job is run by another worker, or not at all. */
export class JobMoved extends Error {
  override name = "JobMoved";

  constructor() {
    super("the job is no longer run here");
  }
}

/** The server has sent a message of more than the maximum size. */
export class MessageTooLong extends Error {
  override name = "MessageTooLong";

  constructor(maxBytes: number, options?: ErrorOptions) {
    super(`its answer has more than ${maxBytes} bytes`, options);
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

/** The server's answer is nested too deep to be read. */
export class AnswerTooDeep extends RpcError {
  override name = "AnswerTooDeep";

  constructor() {
    super(TOO_DEEP);
  }
}

/** How much of a page is read. The time to find its sections without an end grows with the square of this. */
const MAX_PAGE_CHARACTERS = 10_000;
/** How much of an answer is shown. */
const MAX_TEXT_CHARACTERS = 200;

/** Describes an answer outside the protocol, by a server or a proxy before it. Of an HTML page only the text is kept. */
export function describeAnswer({ status = 0, message: markedMessage }: SdkHttpError): string {
  const message = restoredText(markedMessage);
  const page = [/<body\b/i, /<(!doctype|html)/i].map((pattern) => message.search(pattern)).find((at) => at >= 0);
  const text = message
    .slice(page ?? 0)
    .slice(0, MAX_PAGE_CHARACTERS)
    .replace(page === undefined ? /^$/ : /<(head|style|script)\b.*?<\/\1>|<[^<>]*>|[<>]/gis, " ")
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim()
    .slice(0, MAX_TEXT_CHARACTERS);
  return `it answered ${status}${text === "" ? "" : `: ${text}`}`;
}

/** The codes of errors after which nothing was sent. */
const NOT_SENT_CODES: ReadonlySet<string> = new Set([
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
  SdkErrorCode.NotConnected,
]);

/** Why an answer outside the protocol says that the request was not executed; undefined if it may have been. */
function refusalCause(status: number, text: string): RefusalCause | undefined {
  // A server may answer 408 because a tool took too long.
  if (status < 400 || status >= 500 || status === 408) return undefined;
  // For a session that it does not know, a server answers 404, and some answer 400 with a text of their own.
  if (status === 404 || (status === 400 && /session|not initialized/i.test(text))) return "session";
  return [409, 425, 429].includes(status) ? "busy" : "request";
}

/** The protocol error in an HTTP error's body, if it answers the request `id`. Without an id it is the transport's, or a proxy's. */
function rpcErrorIn({ data }: SdkHttpError, id: string | undefined): RpcError | undefined {
  const message = Object(jsonOf(String(Object(data).text)));
  if (id === undefined || message.id !== id || !isRecord(message.error)) return undefined;
  return isTooDeep(message) ? new AnswerTooDeep() : new RpcError(restoreIntegers(message.error));
}

/** Classifies the error of sending the request `id`. */
export function classify(error: unknown, id?: string): Error {
  if (error instanceof OutcomeUnknown || error instanceof NotSent || error instanceof RpcError) return error;
  if (error instanceof SdkHttpError) {
    const answer = rpcErrorIn(error, id);
    if (answer) return answer;
    const text = describeAnswer(error);
    const why = refusalCause(error.status ?? 0, text);
    return why === undefined ? new AnswerLost(text) : new CallRefused(why, text);
  }
  const cause = (error as { cause?: { code?: unknown; message?: string } } | undefined)?.cause;
  const code = String(cause?.code ?? (error as { code?: unknown })?.code ?? "");
  // The same codes come from an open connection that breaks, whose requests the server may have. If a host has several addresses,
  // the error holds one for each.
  const failures = cause instanceof AggregateError ? cause.errors : [cause ?? error];
  const isConnecting = failures.every((failure) => failure?.syscall === "connect");
  if (isConnecting || NOT_SENT_CODES.has(code)) return new NotSent(code);
  if (error instanceof PrivateAddress) return new NotSent(error.message);
  return new AnswerLost(cause?.message ?? (error instanceof Error ? error.message : String(error)));
}

/** How the SDK's transports report a message that is too long, and a stream that they try no more to resume. */
const SDK_TOO_LONG = /^ReadBuffer exceeded maximum size|^SSE stream disconnected: MessageTooLong\b/;
const SDK_NOT_RESUMED = /^Maximum reconnection attempts/;

/** Classifies an error that a transport reports. Of these two, the SDK's transports pass on the texts alone. */
export function transportError(error: Error): Error {
  if (SDK_TOO_LONG.test(error.message)) return new MessageTooLong(MAX_MESSAGE_BYTES, { cause: error });
  if (SDK_NOT_RESUMED.test(error.message)) return new AnswerLost(error.message, { cause: error });
  return error;
}
