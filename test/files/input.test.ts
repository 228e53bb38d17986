/** Files that clients give to tools: as an https URL, as a data: URI, or as another job's file. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bearerBindings, callerAt, type TestCaller } from "../auth/support.ts";
import { rpc } from "../support/rpc.ts";
import { type Stack, startStack } from "../support/stack.ts";

const TOKENS = { ada: "static-token-of-ada", eve: "static-token-of-eve" };
const programs = { edge: "test/files/fixture/files-edge.ts", worker: "test/files/fixture/files-worker.ts" };
const TEXT = "what is in the file";

/** Starts a web server on this machine, with a certificate that the worker trusts. */
async function serve(folder: string): Promise<Server> {
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
  const made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  await promisify(execFile)("openssl", ["req", "-x509", ...made, "-keyout", key, "-out", cert, ...subject]);
  let asked = 0;
  const server = createServer({ key: await readFile(key), cert: await readFile(cert) }, ({ url }, response) => {
    const answer = (status: number, headers: Record<string, string>, body = "") =>
      response.writeHead(status, headers).end(body);
    if (url === "/text") answer(200, { "content-type": "text/plain; charset=utf-8" }, TEXT);
    else if (url === "/moved") answer(302, { location: "/text" });
    else if (url === "/plain") answer(302, { location: "http://localhost/text" });
    else if (url === "/round") answer(302, { location: "/round" });
    else if (url === "/untyped.txt") answer(200, {}, TEXT);
    else if (url === "/page") answer(200, { "content-type": "text/html" }, TEXT);
    else if (url === "/busy") answer(asked++ < 2 ? 503 : 200, { "content-type": "text/plain" }, TEXT);
    else if (url === "/endless") {
      response.writeHead(200, { "content-type": "text/plain" });
      const more = setInterval(() => response.write("x".repeat(10_000)), 5);
      response.on("close", () => clearInterval(more));
    } else answer(404, {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

let folder: string;
let server: Server;
let web: string;
let stack: Stack;
let ada: TestCaller;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "files-"));
  server = await serve(folder);
  web = `https://localhost:${(server.address() as AddressInfo).port}`;
  const trust = { NODE_EXTRA_CA_CERTS: join(folder, "cert.pem"), FILES_FROM_PRIVATE: "1" };
  const FILES_URL = join(folder, "kept");
  stack = await startStack({
    programs,
    env: { FILES_URL, ...trust },
    bindings: { FILES_URL, ...bearerBindings(TOKENS) },
  });
  ada = callerAt(stack.url, TOKENS.ada);
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  server?.closeAllConnections();
  server?.close();
  await rm(folder, { recursive: true, force: true });
});

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
let n = 0;
const look = async (file: unknown, caller = ada) => {
  n += 1;
  return (await caller.call("look_at_file", { name: `look ${n}`, file })).result;
};

test("the tool list describes the accepted files", async () => {
  const { result } = await rpc(stack.url, "tools/list", {}, { capabilities: {}, token: TOKENS.ada });
  const tool = result.tools.find(({ name }: { name: string }) => name === "look_at_file");
  expect(tool.inputSchema.properties.file).toEqual({
    type: "string",
    description: expect.stringMatching(
      /^A file \(image\/\* or text\/plain, up to 100 KB\): its https URL, .* data: URI/,
    ),
  });
  expect(tool.inputSchema.required).toContain("file");
});

test.each(["/text", "/moved", "/untyped.txt", "/busy"])("a file at an https address is read: %s", async (path) => {
  expect(await look(`${web}${path}`)).toBe(sha256(TEXT));
});

test.each([
  ["/page", "is text/html, and must be image/*, text/plain"],
  ["/endless", "more than 100000 bytes"],
  ["/gone", "answered 404 for the file"],
  ["/plain", "leads to an address that is not https"],
  ["/round", "more than 5 times"],
])("an unacceptable file fails the job with the reason: %s", async (path, words) => {
  await expect(look(`${web}${path}`)).rejects.toThrow(words);
});

test("a data: URI is read, and so is another job's file of the same caller, by its reference or its URI", async () => {
  expect(await look("data:text/plain;base64,aGVsbG8=")).toBe(sha256("hello"));
  await expect(look("data:text/html,hello")).rejects.toThrow("text/html, and must be image/*");
  const { result } = await ada.call("make_many", { name: "mine", texts: ["mine"] });
  const [uri] = result.uris;
  expect(await look(uri)).toBe(sha256("mine"));
  expect(await look(result.first)).toBe(sha256("mine"));
  expect(await look({ uri })).toBe(sha256("mine"));
  await expect(look(uri, callerAt(stack.url, TOKENS.eve))).rejects.toThrow("the caller has no such file");
});

test.each([
  ...["/etc/passwd", "file:///etc/passwd", "http://example.com/x", "ftp://example.com/x", "https://a:b@example.com/x"],
  ...["job://x", "", 7, null, ["https://example.com/"], `data:text/plain,${"x".repeat(100_001)}`],
])("anything else is refused before a job starts: %j", async (file) => {
  await expect(look(file)).rejects.toThrow(/file: .*(https URL|missing|required)/s);
  await expect(ada.call("probe_status", { job_names: [`look_at_file_look ${n}`] })).resolves.toMatchObject({
    statuses: [{ status: "not_found" }],
  });
});

test("a worker does not fetch files from its own machine or a private network", async () => {
  await using guarded = await startStack({
    resonate: stack.resonate,
    programs,
    env: { NODE_EXTRA_CA_CERTS: join(folder, "cert.pem") },
  });
  const anyone = callerAt(guarded.url, "");
  const { port } = new URL(web);
  for (const host of [
    "127.0.0.1",
    "localhost",
    "[::1]",
    "2130706433",
    "[::ffff:127.0.0.1]",
    "169.254.169.254",
    "10.0.0.1",
  ])
    await expect(look(`https://${host}:${port}/text`, anyone), host).rejects.toThrow(
      "is an address of this machine or of a private network",
    );
});
