import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { failureOf, RequestFailure } from "./failure.ts";

const http = (status: number, code = SdkErrorCode.ClientHttpNotImplemented) => new SdkHttpError(code, "no", { status });
const network = new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED") });

test.each([
  ["nobody answers", network, "unavailable"],
  [
    "the connection breaks while an answer is read",
    new TypeError("terminated", { cause: new Error("") }),
    "unavailable",
  ],
  ["a request times out", new SdkError(SdkErrorCode.RequestTimeout, "Request timed out"), "unavailable"],
  ["another call closes the client", new SdkError(SdkErrorCode.ConnectionClosed, "Connection closed"), "unavailable"],
  ["a request is aborted", new DOMException("This operation was aborted", "AbortError"), "unavailable"],
  ["the server has an internal error", new ProtocolError(-32603, "the Resonate server is away"), "unavailable"],
  ["a proxy answers HTTP 503", http(503), "unavailable"],
  [
    "nobody answers a client that connects",
    new SdkError(SdkErrorCode.EraNegotiationFailed, "probe failed", {}, { cause: network }),
    "unavailable",
  ],
  ["the server asks for a pause", http(429), "busy"],
  ["the token is unknown", http(401, SdkErrorCode.ClientHttpAuthentication), "token"],
  ["the token is not enough", http(403, SdkErrorCode.ClientHttpForbidden), "token"],
  ["the server refuses a parameter", new ProtocolError(-32602, "invalid params"), "request"],
  ["the server refuses a request", http(400), "request"],
  ["a text of the server's own mentions a time-out", new ProtocolError(-32602, "it timed out: 503"), "request"],
  ["the program has an error", new TypeError("args is undefined"), "request"],
] as const)("if %s, the failure says so", (_what, error, why) => {
  expect(failureOf(error).why).toBe(why);
});

test("the message has the cause, and a failure stays as it is", () => {
  expect(failureOf(network).message).toBe("fetch failed: connect ECONNREFUSED");
  const failure = new RequestFailure("busy", "HTTP 429: wait");
  expect(failureOf(failure)).toBe(failure);
});
