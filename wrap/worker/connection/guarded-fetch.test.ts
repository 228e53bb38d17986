import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { getRequestListener } from "@hono/node-server";
import { expect, test } from "vitest";
import { questionOf } from "../call/awaited-request.ts";
import { MAX_MESSAGE } from "../host/host-config.ts";
import { guardedFetch } from "./guarded-fetch.ts";

test("a redirect is handed back and not followed, wherever it leads", async () => {
  const asked: (string | undefined)[] = [];
  const server = createServer(({ url }, response) => {
    asked.push(url);
    response.writeHead(307, { location: "/elsewhere" }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const { port } = server.address() as AddressInfo;
    const init = { method: "POST", body: "{}", redirect: "follow" } as const;
    const response = await guardedFetch(true)(`http://127.0.0.1:${port}/mcp`, init);
    expect(response.status).toBe(307);
    expect(asked).toEqual(["/mcp"]);
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

test.each([
  ["gzip", "application/json", gzipSync],
  ["br", "text/event-stream", brotliCompressSync],
] as const)(
  "an answer that is compressed unasked, by %s as %s, is unpacked, and bounded by what it holds",
  async (encoding, type, pack) => {
    const server = createServer(({ url }, response) => {
      const text = url === "/large" ? " ".repeat(MAX_MESSAGE + 1) : '{"a":1}';
      response.writeHead(200, { "content-type": type, "content-encoding": encoding }).end(pack(text));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      expect(await (await guardedFetch(true)(at)).text()).toBe('{"a":1}');
      await expect(guardedFetch(true)(`${at}/large`).then((response) => response.text())).rejects.toThrow(/bytes/);
    } finally {
      server.close();
      server.closeAllConnections();
    }
  },
);

test("an answer is read where a web framework has put a Response of its own in place of Node's", async () => {
  const { Request: NodeRequest, Response: NodeResponse } = globalThis;
  const server = createServer(getRequestListener(() => Response.json({ a: 1 }), { overrideGlobalObjects: true }));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    expect(globalThis.Response).not.toBe(NodeResponse);
    const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect(await (await guardedFetch(true)(at)).json()).toEqual({ a: 1 });
    expect(await (await guardedFetch(true)(at)).text()).toBe('{"a":1}');
  } finally {
    Object.assign(globalThis, { Request: NodeRequest, Response: NodeResponse });
    server.close();
    server.closeAllConnections();
  }
});

/** However an address of this machine or of a private network is written, and a name that leads there. */
const INSIDE = ["127.0.0.1", "127.1", "2130706433", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "0.0.0.0", "0"];
const IN_SIX = [
  "[::1]",
  "[::]",
  "[::ffff:10.0.0.1]",
  "[::ffff:7f00:1]",
  "[::127.0.0.1]",
  "[64:ff9b::7f00:1]",
  "[fe80::1]",
];
const NAMES = ["localhost", "LOCALHOST", "public.example@127.0.0.1", "169.254.169.254", "１２７.0.0.1"];

test.each([...INSIDE, ...IN_SIX, ...NAMES])(
  "http://%s is refused before anything is sent, unless it is allowed",
  async (host) => {
    const why = (error: Error & { cause?: Error }) => (error.cause ?? error).name;
    expect(await guardedFetch(false)(`http://${host}:6553/`).catch(why)).toBe("PrivateAddress");
  },
);

test("a question of a server's brings the edge no pattern to run, wherever it stands in the form", () => {
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
  ["one message that is too long", "x".repeat(1_000_000), /more than 32000000 bytes/],
  ["ever so many that are not", `event: message\r\ndata: ${"x".repeat(1_000_000)}\r\n\r\n`, undefined],
])("of an answer with %s", async (_what, piece, refused) => {
  const server = createServer((_request, response) => {
    // The reader leaves when it has enough.
    pipeline(Readable.from(Array(40).fill(piece)), response).catch(() => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const { port } = server.address() as AddressInfo;
    const text = (await guardedFetch(true)(`http://127.0.0.1:${port}/mcp`)).text();
    if (refused) await expect(text).rejects.toThrow(refused);
    else expect((await text).length).toBe(40 * piece.length);
  } finally {
    server.close();
    server.closeAllConnections();
  }
});
