import { connect as connectTo, createServer } from "node:net";
import { SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { AnswerLost, CallRefused, classified, NotSent } from "./errors.ts";
import { guardedFetch } from "./guarded-fetch.ts";

/** An error as the HTTP client throws it, caused by one of the system. */
const failed = (cause: Error) => new TypeError("fetch failed", { cause });
const ofSystem = (code: string, syscall: string) => Object.assign(new Error(`${syscall} ${code}`), { code, syscall });

test.each(["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH"])(
  "after %s a request counts as not sent only if no connection was opened",
  (code) => {
    expect(classified(failed(ofSystem(code, "connect")))).toBeInstanceOf(NotSent);
    expect(classified(failed(ofSystem(code, "read")))).toBeInstanceOf(AnswerLost);
    expect(classified(failed(ofSystem(code, "write")))).toBeInstanceOf(AnswerLost);
  },
);

test("a request counts as not sent if none of its host's addresses accepts a connection", async () => {
  const closed = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => closed.once("listening", resolve));
  const { port } = closed.address() as { port: number };
  await new Promise((resolve) => closed.close(resolve));
  const addresses = ["127.0.0.1", "127.0.0.2"].map((address) => ({ address, family: 4 }));
  const socket = connectTo({ host: "two.example", port, lookup: (_host, _options, done) => done(null, addresses) });
  const error = await new Promise<Error>((resolve) => socket.once("error", resolve));
  expect(error).toBeInstanceOf(AggregateError);
  expect(classified(failed(error))).toBeInstanceOf(NotSent);
});

test("a request counts as not sent if its host's name now leads into a private network", async () => {
  const refused = await guardedFetch(false)("http://localhost:6553/mcp").catch((error) => error);
  expect(classified(refused)).toBeInstanceOf(NotSent);
});

test("a request to a program that has ended counts as not sent, with and without a program host", () => {
  expect(classified(new SdkError(SdkErrorCode.NotConnected, "Not connected"))).toBeInstanceOf(NotSent);
  expect(classified(Object.assign(new Error("Not connected"), { code: "NotConnected" }))).toBeInstanceOf(NotSent);
});

test("an answer outside the protocol is shown without characters that control a terminal", () => {
  const error = new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, "no \u001b[2J\n\u0007 entry", { status: 403 });
  expect(classified(error).message).toBe("it answered 403: no [2J entry");
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
])("of %s, the text is shown, and it is found soon", (_what, page, shown) => {
  const began = performance.now();
  const { message } = classified(new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, page, { status: 403 }));
  expect(message.slice(0, 30)).toBe(shown);
  expect(performance.now() - began).toBeLessThan(2_000);
});

test.each([
  [400, CallRefused],
  [408, AnswerLost],
  [429, CallRefused],
  [503, AnswerLost],
])("HTTP %i tells whether a request was refused, or may have had its effect", (status, kind) => {
  const error = new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, "", { status });
  expect(classified(error)).toBeInstanceOf(kind);
});
