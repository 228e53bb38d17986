import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { getRequestListener } from "@hono/node-server";
import { expect, test } from "vitest";
import { QuestionEntry } from "../../../core/jobs/feed/progress-feed.ts";
import { serveHttp } from "../../../testing/stack/http-server.ts";
import { questionOf } from "../call/awaited-request.ts";
import { MAX_MESSAGE_BYTES } from "../host/host-config.ts";
import { guardedFetch } from "./guarded-fetch.ts";

test("a redirect is returned and not followed, even to the same server", async () => {
  const urls: (string | undefined)[] = [];
  await using server = await serveHttp(({ url }, response) => {
    urls.push(url);
    response.writeHead(307, { location: "/elsewhere" }).end();
  });
  const init = { method: "POST", body: "{}", redirect: "follow" } as const;
  const response = await guardedFetch(true)(`${server.url}/mcp`, init);
  expect(response.status).toBe(307);
  expect(urls).toEqual(["/mcp"]);
});

test.each([
  ["gzip", "application/json", gzipSync],
  ["br", "text/event-stream", brotliCompressSync],
] as const)(
  "an answer that is compressed without a request for it, by %s as %s, is unpacked, and its unpacked size is limited",
  async (encoding, type, pack) => {
    await using server = await serveHttp(({ url }, response) => {
      const text = url === "/large" ? " ".repeat(MAX_MESSAGE_BYTES + 1) : '{"a":1}';
      response.writeHead(200, { "content-type": type, "content-encoding": encoding }).end(pack(text));
    });
    expect(await (await guardedFetch(true)(server.url)).text()).toBe('{"a":1}');
    await expect(guardedFetch(true)(`${server.url}/large`).then((response) => response.text())).rejects.toThrow(
      /bytes/,
    );
  },
);

test("an answer is read even if a web framework has replaced Node's Response by its own", async () => {
  const { Request: RequestBefore, Response: ResponseBefore } = globalThis;
  await using server = await serveHttp(
    getRequestListener(() => Response.json({ a: 1 }), { overrideGlobalObjects: true }),
  );
  try {
    expect(globalThis.Response).not.toBe((await fetch("data:,")).constructor);
    expect(await (await guardedFetch(true)(server.url)).json()).toEqual({ a: 1 });
    expect(await (await guardedFetch(true)(server.url)).text()).toBe('{"a":1}');
  } finally {
    Object.assign(globalThis, { Request: RequestBefore, Response: ResponseBefore });
  }
});

/** Various spellings of addresses of this machine or of a private network, and names that lead there. */
const PRIVATE_ADDRESSES = [
  "127.0.0.1",
  "127.1",
  "2130706433",
  "0177.0.0.1",
  "0x7f.0.0.1",
  "0x7f000001",
  "0.0.0.0",
  "0",
];
const PRIVATE_IPV6_ADDRESSES = [
  "[::1]",
  "[::]",
  "[::ffff:10.0.0.1]",
  "[::ffff:7f00:1]",
  "[::127.0.0.1]",
  "[64:ff9b::7f00:1]",
  "[fe80::1]",
];
const PRIVATE_NAMES = ["localhost", "LOCALHOST", "public.example@127.0.0.1", "169.254.169.254", "１２７.0.0.1"];

test.each([...PRIVATE_ADDRESSES, ...PRIVATE_IPV6_ADDRESSES, ...PRIVATE_NAMES])(
  "http://%s is refused before anything is sent, unless it is allowed",
  async (host) => {
    const why = (error: Error & { cause?: Error }) => (error.cause ?? error).name;
    expect(await guardedFetch(false)(`http://${host}:6553/`).catch(why)).toBe("PrivateAddress");
  },
);

test("patterns are removed from a server's question, anywhere in its form, so that the edge never runs one", () => {
  const pattern = "^(a+)+$";
  const fields = { pattern: { type: "string", pattern }, list: { type: "array", items: { type: "string", pattern } } };
  const { message, requestedSchema } = questionOf({
    message: "Which?",
    requestedSchema: { type: "object", properties: fields, required: ["pattern"] },
  });
  expect(message).toBe("Which?");
  expect(requestedSchema).toEqual({
    type: "object",
    properties: { pattern: { type: "string" }, list: { type: "array", items: { type: "string" } } },
    required: ["pattern"],
  });
});

test.each([
  undefined,
  "text",
  { type: "array" },
  { type: "object", properties: null },
  { type: "object", properties: ["sure"] },
])("a server's question with the form %j can be read and answered", (requestedSchema) => {
  const question = questionOf({ requestedSchema });
  const form = { type: "object", properties: {} };
  expect(question).toEqual({ message: "", requestedSchema: form, keepsIntegers: true });
  expect(QuestionEntry.safeParse(question).success).toBe(true);
});

test.each([
  ["one message that is too long, is refused", ["x".repeat(1_000_000)], /more than 32000000 bytes/],
  ["many short messages, is read", [`event: message\r\ndata: ${"x".repeat(1_000_000)}\r\n\r\n`], undefined],
  ["many short messages whose ends arrive in parts, is read", [`data: ${"x".repeat(1_000_000)}\n`, "\n"], undefined],
])("an answer of 40 MB, with %s", async (_what, pieces, refusal) => {
  await using server = await serveHttp((_request, response) => {
    // The reader disconnects when a message is too long.
    pipeline(Readable.from(Array<string[]>(40).fill(pieces).flat()), response).catch(() => {});
  });
  const text = (await guardedFetch(true)(`${server.url}/mcp`)).text();
  if (refusal) await expect(text).rejects.toThrow(refusal);
  else expect((await text).length).toBe(40 * pieces.join("").length);
});
