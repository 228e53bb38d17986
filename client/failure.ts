/** Why a request to a server has no result. */
import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError, UnauthorizedError } from "@modelcontextprotocol/client";
import { ErrorCode } from "../core/tools/mcp.ts";

/**
 * `unavailable`: nobody answers, or the server says that it cannot now; `busy`: it asks for a pause (HTTP 429); `token`: it refuses
 * the token; `request`: it refuses the request.
 */
export type FailureCause = "unavailable" | "busy" | "token" | "request";

/** A request has no result. The message is that of the error that ended it. */
export class RequestFailure extends Error {
  override name = "RequestFailure";
  readonly why: FailureCause;

  constructor(why: FailureCause, message: string, options?: ErrorOptions) {
    super(message, options);
    this.why = why;
  }
}

/** Why an answer with this HTTP status is no answer of the protocol. */
export function causeOfStatus(status: number): FailureCause {
  if (status === 401) return "token";
  if (status === 429) return "busy";
  return status >= 500 ? "unavailable" : "request";
}

/** Classifies the error of a request. */
export function failureOf(error: unknown): RequestFailure {
  if (error instanceof RequestFailure) return error;
  const { message, cause } = error as Error & { cause?: Error };
  const text = cause?.message ? `${message}: ${cause.message}` : message;
  return new RequestFailure(causeOf(error), text, { cause: error });
}

/** The codes of errors of the SDK after which the same request may succeed, over the same connection or another one. */
const UNAVAILABLE_CODES: readonly SdkErrorCode[] = [
  SdkErrorCode.NotConnected,
  SdkErrorCode.ConnectionClosed,
  SdkErrorCode.RequestTimeout,
  SdkErrorCode.SendFailed,
];

function causeOf(error: unknown): FailureCause {
  if (error instanceof RequestFailure) return error.why;
  if (error instanceof UnauthorizedError) return "token";
  if (error instanceof SdkHttpError) {
    return error.code === SdkErrorCode.ClientHttpForbidden ? "token" : causeOfStatus(error.status);
  }
  if (error instanceof SdkError) {
    if (UNAVAILABLE_CODES.includes(error.code)) return "unavailable";
    if (error.code !== SdkErrorCode.EraNegotiationFailed) return "request";
    // Another call may have closed the connection meanwhile.
    return error.cause === undefined ? "unavailable" : causeOf(error.cause);
  }
  if (error instanceof ProtocolError) return error.code === ErrorCode.InternalError ? "unavailable" : "request";
  if (error instanceof DOMException) return "unavailable";
  return isNetworkError(error) ? "unavailable" : "request";
}

/** Whether the connection failed while a response was read: `fetch` reports that as a `TypeError` with a cause. */
const isNetworkError = (error: unknown): boolean => error instanceof TypeError && error.cause !== undefined;
