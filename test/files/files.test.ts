/** Files of jobs, through the real edge and worker, which share a folder. */

import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, open, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newToken } from "../../cli/static-token.ts";
import { type Caller, callerOf } from "../../core/author/caller.ts";
import type { FileReference } from "../../core/author/file.ts";
import { ResonateClient } from "../../core/resonate/connection/client.ts";
import { Sealing } from "../../core/resonate/sealing.ts";
import { folderStore } from "../../features/files/folder.ts";
import { FileStorage, folderOf } from "../../features/files/kept-files.ts";
import { locationOf } from "../../features/files/location.ts";
import { chunksOf, inPieces, PART_BYTES } from "../../features/files/storage/objects.ts";
import { sweep } from "../../features/files/sweep.ts";
import { Seal } from "../../functions/auth/seal.ts";
import { until } from "../../testing/stack/program.ts";
import { bearerBindings, callerAt, type TestCaller } from "../auth/support.ts";
import { send, call as toolCall } from "../limits/support.ts";
import { operatorAt } from "../operate/support.ts";
import { currentClient } from "../support/clients.ts";
import { startResonate } from "../support/resonate.ts";
import { rpc } from "../support/rpc.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { subscribe, type WireTask } from "../tasks/support.ts";
import { hashOf, madeOf } from "./fixture/runs.ts";

const TOKENS = { ada: "token-of-ada", eve: "token-of-eve" };
const PUBLIC_URL = "https://jobs.example";
const operator = newToken();
const tokensOf = ({ sha256 }: { sha256: string }) => JSON.stringify([{ name: "op", sha256 }]);
const programs = { edge: "test/files/fixture/files-edge.ts", worker: "test/files/fixture/files-worker.ts" };

const key = randomBytes(32).toString("base64");
let folder: string;
let stack: Stack;
let ada: TestCaller;
let eve: TestCaller;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "files-"));
  const keys = { FILES_URL: folder, ENCRYPTION_KEYS: key };
  const bindings = { ...keys, ...bearerBindings(TOKENS), VIEW_KEY: "v".repeat(32), PUBLIC_URL };
  stack = await startStack({
    // A sweep reads all jobs of the server.
    own: true,
    programs,
    env: { ...keys, LEASE_SECONDS: "2" },
    bindings: { ...bindings, ALLOWED_HOSTS: "127.0.0.1,jobs.example", OPERATOR_TOKENS: tokensOf(operator) },
  });
  ada = callerAt(stack.url, TOKENS.ada);
  eve = callerAt(stack.url, TOKENS.eve);
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

const wholeOf = (name: string, size: number) => Buffer.concat([...madeOf(name, size)]);

/** The paths of all files below a folder. */
async function kept(path = folder): Promise<string[]> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
}

/** Makes a file as ada; resolves with the job's result, the links to the file, and the line and the URL for the model. */
async function made(name: string, args: object) {
  const params = { name: "make_file", arguments: { name, ...args } };
  const { result } = await rpc(stack.url, "tools/call", params, { capabilities: {}, token: TOKENS.ada });
  if (result.isError) throw new Error(result.content[0].text);
  const texts = result.content.filter(({ type }: { type: string }) => type === "text");
  const line = String(texts.at(-1)?.text);
  const [address = ""] = /https:\S+\/files\/\S+/.exec(line) ?? [];
  const links = result.content.filter(({ type }: { type: string }) => type === "resource_link");
  return { ...result.structuredContent.result, links, line, url: address.replace(PUBLIC_URL, stack.origin) };
}

const readResource = (uri: string, token = TOKENS.ada) =>
  rpc(stack.url, "resources/read", { uri }, { capabilities: {}, token });

test("a file is complete in another step, as a resource, and at its address, where ranges work too", async () => {
  const size = 300_001; // encrypted in two pieces
  const whole = wholeOf("letter", size);
  const { file, read, links, line, url } = await made("letter", { file: "größe*.txt", size });
  const sha256 = await hashOf([whole]);
  expect(file).toMatchObject({ name: "größe*.txt", mimeType: "text/plain", size, sha256, step: "make", attempt: 1 });
  expect(read).toBe(sha256);
  expect(links).toEqual([{ type: "resource_link", uri: file.uri, name: "größe*.txt", mimeType: "text/plain", size }]);
  expect(line).toMatch(/^größe\*\.txt, text\/plain, 300 KB: https:\/\/jobs\.example\/files\/\S+ \(until 20.*Z\)$/);

  const { result } = await readResource(file.uri);
  expect(result.contents).toEqual([{ uri: file.uri, mimeType: "text/plain", text: whole.toString() }]);

  const answer = await fetch(url);
  expect(await hashOf([new Uint8Array(await answer.arrayBuffer())])).toBe(sha256);
  expect(answer.status).toBe(200);
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    "accept-ranges": "bytes",
    "content-disposition": `attachment; filename="gr__e_.txt"; filename*=UTF-8''gr%C3%B6%C3%9Fe%2A.txt`,
    "content-length": String(size),
    "content-security-policy": "sandbox; default-src 'none'",
    "content-type": "text/plain",
    "x-content-type-options": "nosniff",
  });
  const etag = String(answer.headers.get("etag"));
  const ask = async (headers: Record<string, string>, method = "GET") => {
    const {
      status,
      headers: given,
      ...response
    } = await fetch(url, { method, headers }).then(async (response) => ({
      status: response.status,
      headers: response.headers,
      body: Buffer.from(await response.arrayBuffer()),
    }));
    return { status, range: given.get("content-range"), length: given.get("content-length"), body: response.body };
  };
  for (const [range, from, to] of [
    ["bytes=0-9", 0, 10],
    ["bytes=262100-262200", 262_100, 262_201],
    ["bytes=300000-", 300_000, size],
    ["bytes=-5", size - 5, size],
    ["bytes=299999-999999", 299_999, size],
  ] as const) {
    const part = { status: 206, range: `bytes ${from}-${to - 1}/${size}`, length: String(to - from) };
    expect(await ask({ range }), range).toEqual({ ...part, body: whole.subarray(from, to) });
  }
  expect(await ask({ range: "bytes=300001-" })).toMatchObject({ status: 416, range: `bytes */${size}` });
  expect(await ask({ range: "bytes=0-1", "if-range": '"another"' })).toMatchObject({
    status: 200,
    length: String(size),
  });
  expect(await ask({ "if-none-match": etag })).toMatchObject({ status: 304 });
  expect(await ask({}, "HEAD")).toMatchObject({ status: 200, length: String(size), body: Buffer.alloc(0) });
  // The disk has neither its content nor its name as plain text.
  const stored = await Promise.all((await kept()).map((path) => readFile(path, "latin1")));
  expect(stored.filter((text) => text.includes("letter 65536") || text.includes("größe"))).toEqual([]);
});

test("a file is made from a text, bytes, a Blob, a stream, a response, an iterable or a path, and from nothing else", async () => {
  const path = join(folder, "given.json");
  await writeFile(path, "forms");
  const store = async (args: object) => (await ada.call("store_forms", { name: "forms", path, ...args })).result;
  const files = await store({});
  expect(files.map(({ name, mimeType }: FileReference) => [name, mimeType])).toEqual([
    ["text.md", "text/markdown"],
    ["bytes", "application/octet-stream"],
    ["buffer", "application/octet-stream"],
    ["blob", "text/css"],
    ["stream", "application/octet-stream"],
    ["response.txt", "text/csv"],
    ["iterable", "application/octet-stream"],
    ["path.json", "application/json"],
  ]);
  for (const { name, sha256, size } of files)
    expect([name, sha256, size]).toEqual([name, await hashOf([Buffer.from("forms")]), 5]);
  const before = await kept();
  await expect(store({ name: "failure", odd: "a failure" })).rejects.toThrow("the response has status 404");
  await expect(store({ name: "number", odd: "a number" })).rejects.toThrow("step.file takes a text, bytes, a Blob");
  await expect(store({ name: "folder", odd: "a folder" })).rejects.toThrow("EISDIR");
  expect(await kept()).toEqual(before);
});

test("a response of fetch is stored as a file with the response's type", async () => {
  const args = { name: "fetched", texts: [`${stack.origin}/health`], names: ["health"] };
  const { result } = await ada.call("make_many", args);
  const { first } = result as { first: { mimeType: string; size: number; uri: string } };
  expect(first).toMatchObject({ mimeType: "application/json" });
  const { result: read } = await readResource(first.uri);
  expect(JSON.parse(read.contents[0].text)).toMatchObject({ status: "ok" });
});

test("a resource is a text if its type and its bytes are, and otherwise has the bytes unchanged", async () => {
  const files = {
    "plan.yaml": "steps: 3\n",
    "graph.jsonld": "{}",
    "feed.rss.xml": "<rss/>",
    "marked.csv": "\ufeffa,b\n",
    "latin-1.csv": "data:,Y2Fm6Q==",
    "export.zip": "data:,UEsFBg==",
  };
  const args = { name: "types", texts: Object.values(files), names: Object.keys(files) };
  const { uris } = (await ada.call("make_many", args)).result;
  const contents = async (uri: string) => (await readResource(uri)).result.contents[0];
  expect(await Promise.all(uris.map(contents))).toMatchObject([
    { mimeType: "application/yaml", text: "steps: 3\n" },
    { mimeType: "application/ld+json", text: "{}" },
    { mimeType: "application/xml", text: "<rss/>" },
    { mimeType: "text/csv", text: "\ufeffa,b\n" },
    { mimeType: "text/csv", blob: "Y2Fm6Q==" },
    { mimeType: "application/zip", blob: "UEsFBg==" },
  ]);
});

test("no other caller can read a file, and an invalid address is not found", async () => {
  const { file, url } = await made("secret", { size: 10 });
  const { error } = await readResource(file.uri, TOKENS.eve);
  expect(error).toMatchObject({ code: -32602, message: expect.stringContaining("Resource not found") });
  const take = eve.call("take_file", { name: "stolen", file: file.uri });
  await expect(take).rejects.toThrow("the caller has no such file");
  expect((await ada.call("take_file", { name: "own", file: file.uri })).result).toBe(file.sha256);
  const sealed = String(url.split("/").at(-1));
  for (const forged of [`${sealed.slice(0, -2)}AA`, file.uri, encodeURIComponent(file.uri), "x", ""])
    expect((await fetch(`${stack.origin}/files/${forged}`)).status, forged).toBe(404);
  const [who, other] = await Promise.all([callerOf("ada", "ada"), callerOf("eve", "eve")]);
  const status = async (caller: Caller, { secret = "v", purpose = "file", ms = 60_000 } = {}) => {
    const text = await new Seal(secret.repeat(32)).close(purpose, { uri: file.uri, caller }, Date.now() + ms);
    return (await fetch(`${stack.origin}/files/${text}`)).status;
  };
  expect(await status(who)).toBe(200);
  for (const void_ of [status(who, { ms: -1 }), status(who, { secret: "w" }), status(who, { purpose: "link" })])
    expect(await void_).toBe(404);
  expect(await status(other)).toBe(404);
});

test("a link to a job leads to the files of that job alone, and its owner sees the others that it names", async () => {
  const { file: other } = await made("other", { size: 10 });
  await ada.call("make_many", { name: "linked", texts: ["own"], others: [other] });
  const name = "make_many_linked";
  const linked = { job: name, caller: await callerOf("ada", "ada") };
  const sealed = await new Seal("v".repeat(32)).close("link", linked, Date.now() + 60_000);
  const followed = await fetch(`${stack.origin}/view/${sealed}`, { redirect: "manual" });
  const headers = { cookie: followed.headers.get("set-cookie")?.split(";")[0] ?? "", "sec-fetch-site": "same-origin" };
  const filesAt = async (path: string, headers: Record<string, string>) => {
    const page = await (await fetch(`${stack.origin}${path}?name=${name}`, { headers })).json();
    return (page as { files: { name: string }[] }).files.map((file) => file.name).sort();
  };
  expect(await filesAt(`/pages/link/${sealed.slice(-16)}`, headers)).toEqual(["0.txt"]);
  expect(await filesAt("/pages/job", { authorization: `Bearer ${TOKENS.ada}` })).toEqual(["0.txt", other.name]);
});

test("a notification of a task's end has the lines and links of its files that tasks/get has", async () => {
  const { taskId } = await ada.tasks.call("make_file", { name: "told", file: "told.txt", size: 10, pace: 1_000 });
  await using subscription = await subscribe(stack.url, [taskId], TOKENS.ada);
  const told = await subscription.told(taskId, "completed");
  // The address and its time differ with each request.
  const contentOf = ({ result }: WireTask) =>
    result.content.map((part: { text?: string }) => ({ ...part, text: part.text?.replace(/https:.*$/, "") }));
  expect(contentOf(told)).toEqual(contentOf(await ada.tasks.get(taskId)));
  expect(told.result.content).toContainEqual(expect.objectContaining({ type: "resource_link", name: "told.txt" }));
  await subscription.ended;
  expect(subscription.tasks().filter(({ status }) => status === "completed")).toHaveLength(1);
});

test("a client whose revision has no resource links gets only the line", async () => {
  const { links, line, url } = await made("plain", { size: 10 });
  expect(links).toHaveLength(1);
  for (const [revision, isKnown] of [
    ["2025-06-18", true],
    ["2025-03-26", false],
    [undefined, false],
  ] as const) {
    const headers = { authorization: `Bearer ${TOKENS.ada}`, ...(revision && { "mcp-protocol-version": revision }) };
    const body = toolCall("await_result", { job_names: ["make_file_plain"] });
    const { content } = (await send(stack.url, { headers, body })).messages.at(-1).result;
    expect(content.some(({ type }: { type: string }) => type === "resource_link")).toBe(isKnown);
    const told = content.find(({ text }: { text?: string }) => text?.startsWith("made.bin"));
    expect(told.text.split(" https:")[0]).toBe(line.split(" https:")[0]);
    const [address = ""] = /https:\S+/.exec(told.text) ?? [];
    const arrived = await fetch(address.replace(PUBLIC_URL, stack.origin));
    expect(await arrived.text()).toBe(await (await fetch(url)).text());
  }
});

test("leftovers of attempts are removed: of failed ones, files that the value does not name, and those of a kill -9", async () => {
  const before = new Set(await kept());
  const left = async () => (await kept()).filter((path) => !before.has(path)).length;
  const size = 4_000_000;
  const { file } = await made("failing", { size: 100, fails: 1 });
  expect(file.attempt).toBe(2);
  expect(await left()).toBe(2);

  const job = made("killed", { size, pace: 30 });
  await until("a part of the file to be stored", async () => (await kept()).some((path) => path.includes("~")), 30_000);
  await stack.workers[0]?.kill();
  await stack.workers[0]?.start();
  const again = await job;
  expect(again.read).toBe(await hashOf(madeOf("killed", size)));
  expect(await left()).toBe(4);
});

test("downloads that nobody reads take their caller's slots, and give them back when they are left", async () => {
  const size = 12_000_000; // more than the connection holds
  const { url } = await made("unread", { file: "unread.bin", size });
  const { port, pathname, hostname } = new URL(url);
  /** Asks for the file, and reads no more than the status. */
  const ask = () =>
    new Promise<{ status: number; socket: Socket }>((resolve, reject) => {
      const socket = connect(Number(port), hostname, () =>
        socket.write(`GET ${pathname} HTTP/1.1\r\nhost: ${hostname}:${port}\r\n\r\n`),
      );
      socket.on("error", reject).once("data", (text) => {
        socket.pause();
        resolve({ status: Number(String(text).split(" ", 2)[1]), socket });
      });
    });
  const all = await Promise.all(Array.from({ length: 33 }, ask));
  expect(all.map(({ status }) => status).sort()).toEqual([...Array(32).fill(200), 429]);
  for (const { socket } of all) socket.destroy();
  const download = async () => (await (await fetch(url)).arrayBuffer()).byteLength === size;
  await until("a slot is free", download, 20_000);
});

test("a file that was damaged on the disk is not served", async () => {
  const before = new Set(await kept());
  const { file, url } = await made("damaged", { size: 1_000 });
  const path = (await kept()).find((each) => !before.has(each) && !each.endsWith(".json")) ?? "";
  const handle = await open(path, "r+");
  await handle.write(Buffer.from([1, 2, 3]), 0, 3, 500);
  await handle.close();
  await expect(fetch(url).then((response) => response.arrayBuffer())).rejects.toThrow();
  await expect(ada.call("take_file", { name: "damaged copy", file: file.uri })).rejects.toThrow("not what was stored");
});

test("the files of a job are removed when it is forgotten, and a sweep removes those of jobs that no longer exist", async () => {
  const before = new Set(await kept());
  const left = async () => (await kept()).filter((path) => !before.has(path));
  const stored = async () => (await ada.call("list_jobs", {})).stored.bytes;
  const used = await stored();
  await made("forgotten", { size: 300_000 });
  expect(await left()).toHaveLength(2);
  await until("the file to count among the caller's bytes", async () => (await stored()) > used + 300_000, 30_000);
  const { forgotten, hidden = [] } = await ada.call("forget_jobs", { job_names: ["make_file_forgotten"] });
  expect([...forgotten, ...hidden]).toEqual(["make_file_forgotten"]);
  // A server that cannot remove jobs keeps the job and its files.
  expect(await left()).toHaveLength(forgotten.length > 0 ? 0 : 2);

  const { file } = await made("staying", { size: 10 });
  const files = new FileStorage({
    ...locationOf({ FILES_URL: folder, ENCRYPTION_KEYS: key }),
    objects: folderStore(folder),
  });
  const about = { job: `${stack.namespace}make_file_gone`, name: "a.txt", mimeType: "text/plain" };
  const at = `${await folderOf(about.job)}/${"0".repeat(16)}-1.1.1`;
  await files.write(at, chunksOf(new Blob(["gone"]).stream()), about);
  await files.location.objects.write(
    `${at.slice(0, -1)}2`,
    inPieces(chunksOf(new Blob(["half"]).stream()), PART_BYTES),
  );
  const client = new ResonateClient({
    url: stack.resonate.url,
    token: stack.resonate.env.RESONATE_TOKEN,
    codec: new Sealing(key),
  });
  // Files that do not belong to a job stay.
  const others = ["list.txt", "notes/old.txt", `notes/${"a".repeat(16)}-1.1.1`].map((path) => join(folder, path));
  await mkdir(join(folder, "notes"));
  for (const path of others) await writeFile(path, "a stranger's");
  // No file is old enough yet.
  expect(await sweep(files, client)).toBe(0);
  // If a server knows none of the jobs, it is probably the wrong one, so the sweep removes none of their files.
  await using empty = await startResonate();
  const stranger = new ResonateClient({ url: empty.url, token: empty.env.RESONATE_TOKEN });
  const all = (await kept()).filter((path) => path.includes(".json"));
  const unfinished = await sweep(files, stranger, -1_000);
  expect((await kept()).filter((path) => path.includes(".json"))).toEqual(all);
  expect(unfinished + (await sweep(files, client, -1_000))).toBeGreaterThanOrEqual(2);
  expect((await kept()).filter((path) => path.includes(at.slice(0, 40)))).toEqual([]);
  expect(await kept()).toEqual(expect.arrayContaining(others));
  expect((await readResource(file.uri)).result.contents).toHaveLength(1);
});

test("a malformed file name and a file beyond the reader's limits are refused with a message", async () => {
  await expect(ada.call("make_file", { name: "named", file: "../x", size: 1 })).rejects.toThrow("without slashes");
  const { file } = await made("limited", { size: 1_000 });
  const take = (name: string, more: object) => ada.call("take_file", { name, file: file.uri, ...more });
  await expect(take("large", { max: 999 })).rejects.toThrow("1000 bytes; up to 999");
  await expect(take("typed", { type: "image/*" })).rejects.toThrow("application/octet-stream, and must be image/*");
  for (const [i, odd] of [
    "/etc/passwd",
    "file:///etc/passwd",
    "https://169.254.169.254/",
    "job://x/files/../y",
  ].entries())
    await expect(ada.call("take_file", { name: `odd ${i}`, file: odd }), odd).rejects.toThrow(
      "fetches no other address",
    );
  const given = await ada.call("take_file", { name: "data", file: "data:text/plain;base64,aGVsbG8=", type: "text/*" });
  expect(given.result).toBe(await hashOf([Buffer.from("hello")]));
});

test("an operator who blocks a caller also invalidates the addresses of the caller's files", async () => {
  const { url } = await made("blocked", { size: 10 });
  const { act } = operatorAt(stack.origin, operator.token);
  const status = async () => (await fetch(url)).status;
  expect(await status()).toBe(200);
  await act({ do: "block", caller: "ada" });
  await until("the address to be invalid", async () => (await status()) === 404, 30_000);
  await until(
    "the caller to be refused",
    () =>
      ada.call("list_jobs", {}).then(
        () => false,
        () => true,
      ),
    30_000,
  );
  await eve.call("list_jobs", {});
  await act({ do: "unblock", caller: "ada" });
  await until("the address to be valid again", async () => (await status()) === 200, 30_000);
});

test("a job whose files exceed its caller's limit fails while it stores them, and leaves nothing behind", async () => {
  const FILES_URL = join(folder, "bounded");
  await using bounded = await startStack({
    resonate: stack.resonate,
    programs,
    env: { FILES_URL },
    bindings: { FILES_URL, ...bearerBindings(TOKENS), MAX_STORED_BYTES: "3000000" },
  });
  const caller = callerAt(bounded.url, TOKENS.ada);
  const words = "the job's files come to more than the 3000000 bytes";
  const left = async () => {
    const paths = await kept(FILES_URL);
    return paths.filter((path) => !path.endsWith(".json")).length;
  };
  // At this pace the whole file would take twelve minutes.
  await expect(caller.call("make_file", { name: "endless", size: 1e9, pace: 50 })).rejects.toThrow(words);
  expect(await left()).toBe(0);
  // Several files that one step stores at once.
  const texts = Array.from({ length: 8 }, () => "x".repeat(100_000));
  await caller.call("make_many", { name: "few", texts });
  expect(await left()).toBe(8);
  await caller.call("forget_jobs", { job_names: ["make_many_few"] });
  const before = await left();
  const one = { size: 1_200_000 };
  // Files of a failed attempt are removed and no longer count.
  await caller.call("make_file", { name: "again", ...one, fails: 2 });
  expect(await left()).toBe(before + 1);
  await expect(caller.call("make_file", { name: "steps", ...one, more: 9 })).rejects.toThrow(words);
  expect(await left()).toBe(before + 3);
});

test("without a store for files, a step that stores one fails and says so", async () => {
  await using bare = await startStack({ resonate: stack.resonate, programs });
  await using client = await currentClient.connect(bare.url);
  const { isError, text } = await client.callTool("make_file", { name: "nowhere", size: 1 });
  expect(isError).toBe(true);
  expect(text).toContain("keeps no files: set FILES_URL");
});
