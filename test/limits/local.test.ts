/**
 * Local listeners and files belong to their owner: web pages and other users of the machine cannot reach them. With an
 * account (`RESONATE_HOST=object`) the embedded server is the object, reached through the edge. The tests of files are
 * about the Node host; the others are about the host under test.
 */
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { serveHttp } from "../../testing/stack/http-server.ts";
import { run, until } from "../../testing/stack/program.ts";
import { ownGroup, startWorker, type WorkerProcess } from "../../testing/stack/worker-process.ts";
import { isAccount } from "../support/account.ts";
import { type Resonate, startResonate } from "../support/resonate.ts";
import { type Stack, startStack } from "../support/stack.ts";
import { call, names, send } from "./support.ts";

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "closed-"));
});
afterAll(() => rm(dir, { recursive: true }));

const envelope = (auth?: string) => ({
  kind: "promise.get",
  head: { corrId: "1", version: "2026-04-01", ...(auth !== undefined && { auth }) },
  data: { id: "none" },
});

const SECRET = "a-secret-of-this-machine";
const STRANGERS = ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8001", "evil.example:80"];

/** Starts the embedded server with a secret, and an edge and a worker that know the secret. */
async function startWithSecret() {
  await using started = new AsyncDisposableStack();
  const server = isAccount ? undefined : started.use(await startResonate({ own: true, token: SECRET }));
  const stack = started.use(await startStack(server && { resonate: server }));
  const all = started.move();
  return { stack, server: server ?? stack.resonate, [Symbol.asyncDispose]: () => all.disposeAsync() };
}

describe("a page whose host name resolves to this machine", () => {
  let server: Awaited<ReturnType<typeof startWithSecret>>;
  let resonate: Resonate;
  let token: string | undefined;
  let worker: WorkerProcess;
  beforeAll(async () => {
    server = await startWithSecret();
    resonate = server.server;
    token = resonate.env.RESONATE_TOKEN;
    worker = await startWorker({ ...resonate.env, ...ownGroup().env });
  });
  afterAll(async () => {
    await worker?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  test.each(STRANGERS)("(%s) reaches no path of the embedded server", async (host) => {
    const headers = { host, authorization: `Bearer ${token}` };
    for (const path of ["/poll/workers/1", "/poll/edge/1", "/health", "/ready", "/"]) {
      const { status } = await send(resonate.url + path, { method: "GET", headers });
      expect([path, status]).toEqual([path, 403]);
    }
    expect((await send(resonate.url, { headers, body: envelope(token) })).status).toBe(403);
  });

  test.each([...STRANGERS, "metrics.example.com"])("(%s) reads nothing from the worker", async (host) => {
    for (const path of ["/health", "/metrics"]) {
      const { status, text } = await send(new URL(path, worker.healthUrl).href, { method: "GET", headers: { host } });
      expect([path, status, text]).toEqual([path, 403, expect.not.stringMatching(/connected|resonate_/)]);
    }
  });

  test("is refused, while this machine's names are not", async () => {
    const { port } = new URL(resonate.url);
    for (const host of ["localhost", `127.0.0.1:${port}`, `[::1]:${port}`, "LOCALHOST"]) {
      // An edge accepts the names in ALLOWED_HOSTS, and [::1] is not one of them here.
      const served = isAccount && host.startsWith("[") ? 403 : 404;
      const { status } = await send(resonate.url, { headers: { host }, body: envelope(token) });
      expect([host, status]).toEqual([host, served]);
      expect((await send(worker.healthUrl, { method: "GET", headers: { host } })).status).toBe(200);
    }
    // The names by which an orchestrator and a collector of metrics in its network ask.
    for (const host of ["worker", "worker:8081", "10.1.2.3:8081", "worker.default.svc.cluster.local"]) {
      expect((await send(worker.healthUrl, { method: "GET", headers: { host } })).status).toBe(200);
    }
  });

  test("is refused, while the names in HEALTH_NAMES are allowed", async () => {
    await using named = await startWorker({ ...resonate.env, ...ownGroup().env, HEALTH_NAMES: "metrics.example.com" });
    const status = async (host: string) => (await send(named.healthUrl, { method: "GET", headers: { host } })).status;
    expect(await status("metrics.example.com:8081")).toBe(200);
    expect(await status("evil.example")).toBe(403);
  });
});

describe("an embedded server with a secret", () => {
  let started: Awaited<ReturnType<typeof startWithSecret>>;
  let stack: Stack;
  let url: string;
  let secret: string;
  beforeAll(async () => {
    started = await startWithSecret();
    stack = started.stack;
    url = started.server.url;
    secret = started.server.env.RESONATE_TOKEN ?? "";
    expect(secret).not.toBe("");
  });
  afterAll(() => started?.[Symbol.asyncDispose]());

  test.each<[string, () => string | undefined]>([
    ["nothing", () => undefined],
    ["an empty text", () => ""],
    ["another secret", () => "wrong"],
    ["the secret and more", () => `${secret}x`],
    ["a part of the secret", () => secret.slice(1)],
  ])("refuses a call that shows %s", async (_what, shown) => {
    const auth = shown();
    const { status, messages } = await send(url, { body: envelope(auth) });
    expect([status, messages[0]]).toEqual([
      401,
      { kind: "promise.get", head: { corrId: "1", status: 401, version: "2026-04-01" }, data: "Unauthorized" },
    ]);
    expect((await send(url, { body: envelope(auth), headers: { authorization: `Bearer ${secret}` } })).status).toBe(
      401,
    );
  });

  test("lets nobody connect without it", async () => {
    for (const headers of [{}, { authorization: "Bearer wrong" }, { authorization: secret }]) {
      expect((await fetch(`${url}/poll/workers/1`, { headers })).status).toBe(401);
    }
  });

  test("serves the edge and the worker that know the secret", async () => {
    const start = call("start_gathering", { latitude: 47.6062, longitude: -122.3321, year: 2013, month: 5 });
    const { job_name } = (await send(stack.url, { body: start })).messages[0].result.structuredContent;
    const { messages } = await send(stack.url, { body: call("await_result", { job_names: [job_name] }) });
    expect(messages.at(-1).result.structuredContent.results[job_name]).toBeDefined();
    expect((await send(stack.url, { body: call("probe_status", { job_names: names(1) }) })).status).toBe(200);
  });
});

describe.skipIf(process.platform === "win32")("on the disk", () => {
  const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);
  /** Starts the embedded server on a folder, does `meanwhile` once it is ready, and ends it. */
  async function serveOnce(data: string, meanwhile: () => Promise<void> = async () => {}): Promise<void> {
    await using server = run("server/node/process.ts", { args: ["--port", "0", "--data", data] });
    await until("the server to be ready", () => server.logs().some(({ msg }) => msg === "ready"));
    await meanwhile();
  }

  test("only the owner can read the state of the embedded server", async () => {
    const data = join(dir, "state");
    await serveOnce(data, async () => {
      const files = await readdir(data);
      expect(files).toEqual(expect.arrayContaining(["resonate.db", "resonate.db-wal"]));
      for (const file of files) expect([file, await modeOf(join(data, file))]).toEqual([file, "600"]);
      expect(await modeOf(data)).toBe("700");
    });
  });

  test("state that everybody can read becomes private", async () => {
    const data = join(dir, ".resonate");
    await serveOnce(data);
    await chmod(data, 0o755);
    for (const file of await readdir(data)) await chmod(join(data, file), 0o644);
    await serveOnce(data, async () => {
      for (const file of await readdir(data)) expect([file, await modeOf(join(data, file))]).toEqual([file, "600"]);
      expect(await modeOf(data)).toBe("700");
    });
  });

  test("a folder that existed before keeps its permissions", async () => {
    const data = join(dir, "shared");
    await mkdir(data, { mode: 0o755 });
    await serveOnce(data, async () => expect(await modeOf(data)).toBe("755"));
  });

  test("only the owner can read keys and tokens", async () => {
    const out = join(dir, "keys");
    await execa(process.execPath, ["cli/main.ts", "keys", "--namespace", "test/", "--out", out]);
    expect(await modeOf(out)).toBe("700");
    for (const file of ["private.pem", "edge.env", "worker.env"])
      expect([file, await modeOf(join(out, file))]).toEqual([file, "600"]);
  });
});

test.skipIf(process.platform !== "linux")(
  "the proxy's arguments, which other users can read, lack its token",
  async () => {
    const seen: (string | undefined)[] = [];
    await using server = await serveHttp((req, res) => {
      const { authorization } = req.headers;
      seen.push(authorization);
      // The token gets no answer: the proxy would end before its arguments are read.
      if (authorization === undefined) res.writeHead(404).end();
    });
    await using proxy = run("cli/main.ts", {
      args: ["proxy", `${server.url}/mcp`],
      env: { MCP_TOKEN: "static-token-of-ada", HOME: dir },
    });
    await until("the proxy to ask the server", () => seen.includes("Bearer static-token-of-ada"), 25_000);
    expect(await readFile(`/proc/${proxy.pid}/cmdline`, "utf8")).not.toContain("static-token-of-ada");
    expect(proxy.output()).not.toContain("static-token-of-ada");
  },
);

test.skipIf(process.platform !== "linux")(
  "the arguments of wrap soon disappear from the process list that other users can read",
  async () => {
    const command = ["--", process.execPath, "-e", "setTimeout(() => {}, 60_000)"];
    await using wrap = run("cli/main.ts", {
      args: ["wrap", "--env", "SECRET=static-token-of-eve", ...command],
      env: { HOME: dir },
    });
    await until("wrap to say so", () => wrap.output().includes("--env-file"), 25_000);
    expect(await readFile(`/proc/${wrap.pid}/cmdline`, "utf8")).not.toContain("static-token-of-eve");
    expect(wrap.output()).not.toContain("static-token-of-eve");
  },
);
