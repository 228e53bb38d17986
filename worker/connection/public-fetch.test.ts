import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isFinal } from "../../core/author/values.ts";
import { publicFetch } from "./public-fetch.ts";

const LARGE = 20_000_000;

let server: Server;
let url: string;
beforeAll(async () => {
  server = createServer(({ url }, response) => {
    if (url === "/stalled") response.writeHead(200).write("the beginning");
    if (url === "/large") response.writeHead(200).end(Buffer.alloc(LARGE));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

test.each(["/silent", "/stalled"])(
  "a fetch of a server that goes silent fails, and may be retried: %s",
  async (path) => {
    const fetch = publicFetch(true, 300);
    const error = await fetch(url + path)
      .then((response) => response.text())
      .catch((error: Error) => error);
    expect(error).toMatchObject({ cause: { message: expect.stringMatching(/Timeout/) } });
    expect(isFinal(error)).toBe(false);
  },
  20_000,
);

test("a fetch waits for its reader as long as that takes", async () => {
  const response = await publicFetch(true, 300)(`${url}/large`);
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  expect((await response.arrayBuffer()).byteLength).toBe(LARGE);
});
