import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { expect, test } from "vitest";
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

test.each(["http://127.0.0.1:6553/", "http://localhost:6553/", "http://[::1]:6553/", "http://[::ffff:10.0.0.1]:6553/"])(
  "%s is refused before anything is sent, unless it is allowed",
  async (url) => {
    const why = (error: Error & { cause?: Error }) => (error.cause ?? error).name;
    expect(await guardedFetch(false)(url).catch(why)).toBe("PrivateAddress");
  },
);

test.each([
  ["one message that is too long", "x".repeat(1_000_000), /more than 16000000 bytes/],
  ["ever so many that are not", `event: message\r\ndata: ${"x".repeat(1_000_000)}\r\n\r\n`, undefined],
])("of an answer with %s", async (_what, piece, refused) => {
  const server = createServer((_request, response) => {
    // Whoever has had enough leaves.
    pipeline(Readable.from(Array(20).fill(piece)), response).catch(() => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const { port } = server.address() as AddressInfo;
    const text = (await guardedFetch(true)(`http://127.0.0.1:${port}/mcp`)).text();
    if (refused) await expect(text).rejects.toThrow(refused);
    else expect((await text).length).toBe(20 * piece.length);
  } finally {
    server.close();
    server.closeAllConnections();
  }
});
