import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { expect, test } from "vitest";
import { questionOf } from "../call/awaited-request.ts";
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
