import { connect as connectTo, createServer } from "node:net";
import { SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { guardedFetch } from "../connection/guarded-fetch.ts";
import { AnswerLost, CallRefused, classify, MessageTooLong, NotSent, transportError } from "./errors.ts";
import { HostedTransport } from "./hosted-transport.ts";

/** An error as the HTTP client throws it, caused by one of the system. */
const fetchError = (cause: Error) => new TypeError("fetch failed", { cause });
const systemError = (code: string, syscall: string) =>
  Object.assign(new Error(`${syscall} ${code}`), { code, syscall });

test.each(["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH"])(
  "after %s a request counts as not sent only if no connection was opened",
  (code) => {
    expect(classify(fetchError(systemError(code, "connect")))).toBeInstanceOf(NotSent);
    expect(classify(fetchError(systemError(code, "read")))).toBeInstanceOf(AnswerLost);
    expect(classify(fetchError(systemError(code, "write")))).toBeInstanceOf(AnswerLost);
  },
);

test("a request counts as not sent if none of its host's addresses accepts a connection", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  const addresses = ["127.0.0.1", "127.0.0.2"].map((address) => ({ address, family: 4 }));
  const socket = connectTo({ host: "two.example", port, lookup: (_host, _options, done) => done(null, addresses) });
  const error = await new Promise<Error>((resolve) => socket.once("error", resolve));
  expect(error).toBeInstanceOf(AggregateError);
  expect(classify(fetchError(error))).toBeInstanceOf(NotSent);
});

test("a request counts as not sent if its host's name now leads into a private network", async () => {
  const refusal = await guardedFetch(false)("http://localhost:6553/mcp").catch((error) => error);
  expect(classify(refusal)).toBeInstanceOf(NotSent);
});

test("a request to a program that has exited counts as not sent, with and without a program host", async () => {
  expect(classify(new SdkError(SdkErrorCode.NotConnected, "Not connected"))).toBeInstanceOf(NotSent);
  const error = await new HostedTransport("none.none").send({ jsonrpc: "2.0", method: "ping", id: 1 }).catch(classify);
  expect(error).toBeInstanceOf(NotSent);
});

test("an error that a transport reports by a text says that a message was too long, or that no answer will come", () => {
  expect(transportError(new Error("ReadBuffer exceeded maximum size of 5 bytes"))).toBeInstanceOf(MessageTooLong);
  const ofStream = new Error(`SSE stream disconnected: ${new MessageTooLong(5)}`);
  expect(transportError(ofStream)).toBeInstanceOf(MessageTooLong);
  expect(transportError(new Error("Maximum reconnection attempts (2) exceeded."))).toBeInstanceOf(AnswerLost);
  const other = new Error("a message of the server: Maximum reconnection attempts");
  expect(transportError(other)).toBe(other);
});

test("an answer outside the protocol is shown without characters that control a terminal", () => {
  const error = new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, "no \u001b[2J\n\u0007 entry", { status: 403 });
  expect(classify(error).message).toBe("it answered 403: no [2J entry");
});

test.each([
  [
    "a page",
    `<!DOCTYPE html><head><title>Error</title></head><body><pre>No <b>entry</b></pre>`,
    "it answered 403: No entry",
  ],
  ["a page without a body", "<html><style>p {}</style><p>No entry", "it answered 403: No entry"],
  ["a long page of tags without an end", `<!DOCTYPE html>${"<".repeat(1_000_000)}`, "it answered 403"],
  ["a long page of sections without an end", `<html>${"<head ".repeat(200_000)}`, "it answered 403: head head hea"],
])("of %s, the text is shown, and it is found soon", (_what, page, text) => {
  const start = performance.now();
  const { message } = classify(new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, page, { status: 403 }));
  expect(message.slice(0, 30)).toBe(text);
  expect(performance.now() - start).toBeLessThan(2_000);
});

test.each([
  [400, "no such field", "request"],
  [400, "no valid session", "session"],
  [404, "", "session"],
  [408, "", undefined],
  [429, "", "busy"],
  [503, "", undefined],
])("HTTP %i (%s) says whether a request was refused, and why, or may have had its effect", (status, text, why) => {
  const error = classify(new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, text, { status }));
  expect(error).toBeInstanceOf(why === undefined ? AnswerLost : CallRefused);
  expect((error as CallRefused).why).toBe(why);
});
