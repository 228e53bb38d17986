import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { execa } from "execa";
import { afterEach, expect, test } from "vitest";
import { type HttpServer, serveHttp } from "../../testing/stack/http-server.ts";
import { post } from "./exchange.ts";

let server: HttpServer | undefined;
afterEach(() => server?.[Symbol.asyncDispose]());

async function serve(answer: (req: IncomingMessage, res: ServerResponse) => void): Promise<string> {
  server = await serveHttp(answer);
  return server.url;
}

const TIMEOUT = { timeout: 10_000 };

test("posts JSON to the exact address, and returns the whole answer even if it comes in pieces", async () => {
  const url = await serve(async (req, res) => {
    res.writeHead(409);
    const said = Buffer.from(`${req.method} ${req.url} ${req.headers["content-type"]} ${await text(req)}`);
    for (const byte of said) res.write(Buffer.of(byte));
    res.end();
  });
  const answer = { status: 409, text: "POST /base application/json {Zürich}" };
  expect(await post(`${url}/base`, "{Zürich}", TIMEOUT)).toEqual(answer);
  expect(await post(`${url}/base`, "{Zürich}", TIMEOUT)).toEqual(answer);
});

test("times out before the answer or in the middle of it, and ends the request", async () => {
  let left = 0;
  const url = await serve((req, res) => {
    res.once("close", () => left++);
    if (req.url === "/begun") res.write("{");
  });
  for (const path of ["/", "/begun"]) {
    await expect(post(url + path, "{}", { timeout: 500 })).rejects.toMatchObject({ name: "TimeoutError" });
  }
  await expect.poll(() => left, { timeout: 10_000 }).toBe(2);
});

test("rejects with the reason of the signal", async () => {
  const url = await serve(() => {});
  const leaving = new AbortController();
  const answer = post(url, "{}", { ...TIMEOUT, signal: leaving.signal });
  leaving.abort(new Error("gone"));
  await expect(answer).rejects.toThrow("gone");
  await expect(post(url, "{}", { ...TIMEOUT, signal: leaving.signal })).rejects.toThrow("gone");
});

test("rejects when nothing listens at the address, and when the connection is cut off", async () => {
  const url = await serve((_req, res) => res.destroy());
  await expect(post(url, "{}", TIMEOUT)).rejects.toThrow();
  await expect(post("http://127.0.0.1:9", "{}", TIMEOUT)).rejects.toThrow();
});

test("follows a server that has moved", async () => {
  const url = await serve(async (req, res) => {
    if (req.url === "/old") res.writeHead(308, { location: "/new" }).end();
    else res.end(`${req.url} ${await text(req)}`);
  });
  expect(await post(`${url}/old`, "{}", TIMEOUT)).toEqual({ status: 200, text: "/new {}" });
});

test("uses the proxy that the environment names", async () => {
  const url = await serve((req, res) => void res.end(`${req.method} ${req.url}`));
  const path = join(import.meta.dirname, "exchange.ts");
  const program = `const { post } = await import(${JSON.stringify(path)});
console.log((await post("http://resonate.example/", "{}", { timeout: 10_000 })).text);`;
  const env = { NODE_USE_ENV_PROXY: "1", HTTP_PROXY: url };
  const { stdout } = await execa(process.execPath, ["--input-type=module", "-e", program], { env });
  expect(stdout).toBe("POST http://resonate.example/");
});
