import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { decodeProtectedHeader, importSPKI, jwtVerify } from "jose";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startChild } from "../../cli/process/child.ts";
import { freePort } from "../../testing/stack/port.ts";
import { run, waitForAnswer, watch } from "../../testing/stack/program.ts";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "keys-"));
});
afterEach(() => rm(dir, { recursive: true }));

async function keys(...args: string[]) {
  const program = run("cli/main.ts", { args: ["keys", ...args] });
  const { exitCode } = await program.exited;
  return { exitCode, output: program.output() };
}

const content = (...path: string[]) => readFile(join(dir, ...path), "utf8");
const env = async (...path: string[]) => parseEnv(await content(...path));

/** The claims of a token, verified with the public key in `k`. */
async function claimsOf(token: string | undefined) {
  const key = await importSPKI(await content("k", "public.pem"), "EdDSA");
  return (await jwtVerify(token ?? "", key, { algorithms: ["EdDSA"], requiredClaims: ["exp"] })).payload;
}

test("creates a key pair, and one token each for edge and worker, limited to the namespace", async () => {
  expect(await keys("--namespace", "prod/", "--out", join(dir, "k"), "--days", "7")).toMatchObject({ exitCode: 0 });
  const edge = await env("k", "edge.env");
  const worker = await env("k", "worker.env");
  const own = { RESONATE_NAMESPACE: "prod/", RESONATE_GROUP: "prod" };
  expect(edge).toEqual({
    ...own,
    RESONATE_TOKEN: expect.any(String),
    TASK_KEY: expect.stringMatching(/^[0-9a-f]{64}$/),
    VIEW_KEY: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
  expect(worker).toEqual({ ...own, RESONATE_TOKEN: expect.any(String) });
  expect(edge.RESONATE_TOKEN).not.toBe(worker.RESONATE_TOKEN);

  for (const [part, token] of Object.entries({ edge: edge.RESONATE_TOKEN, worker: worker.RESONATE_TOKEN })) {
    const { exp = 0, ...claims } = await claimsOf(token);
    expect(claims).toEqual({ prefix: "prod/", role: part, sub: part, iat: expect.any(Number) });
    expect(exp - Number(claims.iat)).toBeLessThanOrEqual(7 * 86_400);
    expect(exp - Number(claims.iat)).toBeGreaterThan(7 * 86_400 - 60);
    // The Resonate server knows the algorithm only by this name.
    expect(decodeProtectedHeader(token ?? "").alg).toBe("EdDSA");
  }
});

test("creates an encryption key for edge and worker with --encrypt", async () => {
  await keys("--namespace", "prod/", "--out", join(dir, "k"), "--encrypt");
  const { ENCRYPTION_KEYS: key = "" } = await env("k", "edge.env");
  expect(Buffer.from(key, "base64").length).toBe(32);
  expect(await env("k", "worker.env")).toMatchObject({ ENCRYPTION_KEYS: key });
});

test("creates a token for the server's operator, for all namespaces, with --operator", async () => {
  await keys("--namespace", "prod/", "--out", join(dir, "k"), "--operator");
  const { RESONATE_TOKEN: token, ...own } = await env("k", "operator.env");
  expect(own).toEqual({ RESONATE_NAMESPACE: "prod/", RESONATE_GROUP: "prod" });
  const claims = await claimsOf(token);
  // The prefix is empty, not absent: the server refuses everything to a token without a prefix.
  expect(claims).toMatchObject({ role: "operator", sub: "operator", prefix: "" });
});

test("secrets are readable by their owner only and are not printed", async () => {
  const { output } = await keys("--namespace", "prod/", "--out", join(dir, "k"));
  for (const name of ["private.pem", "edge.env", "worker.env"]) {
    expect((await stat(join(dir, "k", name))).mode & 0o777, name).toBe(0o600);
  }
  const { RESONATE_TOKEN: token = "", TASK_KEY: taskKey = "" } = await env("k", "edge.env");
  const secrets = [token, taskKey, (await content("k", "private.pem")).split("\n")[1] ?? ""];
  for (const secret of secrets) expect(output).not.toContain(secret.slice(-20));
  expect(output).toContain(join(dir, "k", "edge.env"));
});

test("writes nothing if one of its files exists", async () => {
  await keys("--namespace", "prod/", "--out", join(dir, "k"));
  const before = await content("k", "edge.env");
  await rm(join(dir, "k", "private.pem"));
  const { exitCode, output } = await keys("--namespace", "prod/", "--out", join(dir, "k"));
  expect([exitCode, output]).toEqual([1, expect.stringContaining("public.pem is already there")]);
  expect(await readdir(join(dir, "k"))).toEqual(["edge.env", "public.pem", "worker.env"]);
  expect(await content("k", "edge.env")).toBe(before);
});

test("with --key it renews tokens under the same key, and leaves the task key alone", async () => {
  await keys("--namespace", "prod/", "--out", join(dir, "k"));
  const key = join(dir, "k", "private.pem");
  expect(await keys("--namespace", "prod/", "--key", key, "--out", join(dir, "new"))).toMatchObject({ exitCode: 0 });
  expect(await readdir(join(dir, "new"))).toEqual(["edge.env", "worker.env"]);
  const edge = await env("new", "edge.env");
  expect(edge).not.toHaveProperty("TASK_KEY");
  expect(await claimsOf(edge.RESONATE_TOKEN)).toMatchObject({ prefix: "prod/" });
});

test("with --key and --task-key it adds a deployment to the same server", async () => {
  await keys("--namespace", "prod/", "--out", join(dir, "k"));
  const key = join(dir, "k", "private.pem");
  await keys("--namespace", "test/", "--key", key, "--task-key", "--out", join(dir, "test"));
  const edge = await env("test", "edge.env");
  expect(edge.TASK_KEY).not.toBe((await env("k", "edge.env")).TASK_KEY);
  expect(await claimsOf(edge.RESONATE_TOKEN)).toMatchObject({ prefix: "test/" });
});

test("a file without a private key is refused, and the error names it", async () => {
  const file = join(dir, "wrong.pem");
  await writeFile(file, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
  const { exitCode, output } = await keys("--namespace", "prod/", "--key", file, "--out", join(dir, "k"));
  expect([exitCode, output]).toEqual([1, expect.stringContaining(file)]);
});

test.each([
  // Such a token would also be valid for every namespace that begins with "prod".
  ["a namespace that could begin another", ["--namespace", "prod", "--out", "x"]],
  ["a namespace of several parts", ["--namespace", "prod/eu/", "--out", "x"]],
  ["the whole server", ["--namespace", "", "--out", "x"]],
  ["the reserved worker group", ["--namespace", "default/", "--out", "x"]],
  ["tokens that never expire", ["--namespace", "prod/", "--out", "x", "--days", "0"]],
  ["an unknown option", ["--namespace", "prod/", "--out", "x", "--force"]],
  ["no folder to write", ["--namespace", "prod/"]],
])("refuses %s", async (_what, args) => {
  const { exitCode, output } = await keys(...args);
  expect([exitCode, output]).toEqual([2, expect.stringContaining("Usage: npm run keys")]);
});

// With the standalone Resonate server: only its own verdict on a token counts.
const binary = process.env.RESONATE_BIN;
if (binary) {
  test("the Resonate server accepts only these tokens, and only for their namespace", async () => {
    await keys("--namespace", "prod/", "--out", join(dir, "k"));
    const port = await freePort();
    const settings = {
      AUTH__PUBLICKEY: join(dir, "k", "public.pem"),
      SERVER__PORT: `${port}`,
      SERVER__BIND: "127.0.0.1",
      STORAGE__SQLITE__PATH: join(dir, "resonate.db"),
      OBSERVABILITY__METRICS_PORT: "0",
    };
    const named = Object.entries(settings).map(([name, value]) => [`RESONATE_${name}`, value]);
    await using server = watch(startChild(binary, ["serve"], { env: Object.fromEntries(named), grace: 1_000 }));
    const url = `http://127.0.0.1:${port}`;
    await waitForAnswer(`${url}/ready`, server);

    const get = async (id: string, auth = "") => {
      const head = { corrId: "1", version: "2026-04-01", auth };
      const body = JSON.stringify({ kind: "promise.get", head, data: { id } });
      return (await fetch(url, { method: "POST", body })).status;
    };
    for (const part of ["edge.env", "worker.env"]) {
      const { RESONATE_TOKEN: token = "" } = await env("k", part);
      expect([await get("prod/job", token), await get("test/job", token)], part).toEqual([404, 403]);
      expect(await get("prod/job", `${token.slice(0, -10)}AAAAAAAAAA`), part).toBe(401);
    }
    // A gap that SECURITY.md names: the server does not check the namespace of a call inside another call.
    const { RESONATE_TOKEN: mine = "" } = await env("k", "worker.env");
    await keys("--namespace", "test/", "--key", join(dir, "k", "private.pem"), "--task-key", "--out", join(dir, "t"));
    const { RESONATE_TOKEN: theirs = "" } = await env("t", "worker.env");
    const call = async (kind: string, data: object, auth: string) => {
      const body = JSON.stringify({ kind, head: { corrId: "1", version: "2026-04-01", auth }, data });
      const answer = await fetch(url, { method: "POST", body });
      return { status: answer.status, data: (await answer.json()).data };
    };
    const within = (kind: string, data: object) => ({ kind, head: { corrId: "1", version: "2026-04-01" }, data });
    const promise = (id: string, tags = {}) => ({ id, timeoutAt: Date.now() + 60_000, param: {}, tags });
    await call("promise.create", promise("test/job", { "resonate:branch": "test/job" }), theirs);
    const target = { "resonate:target": "poll://any@x" };
    const create = (tags: object) => {
      const action = within("promise.create", promise("prod/job", { ...target, ...tags }));
      return call("task.create", { pid: "1", ttl: 60_000, action }, mine);
    };
    const malformed = promise("prod/asked", { ...target, "resonate:delay": "?" });
    const is010 = (await call("promise.create", malformed, mine)).status === 400;
    const branchedTask = await create({ "resonate:branch": "test/job" });
    if (is010) expect(branchedTask.status).toBe(400);
    else expect(branchedTask.data.preload).toMatchObject([{ id: "test/job" }]);
    const task = is010 ? await create({}) : branchedTask;
    const settle = within("promise.settle", { id: "test/job", state: "resolved", value: {} });
    const fence = { id: "prod/job", version: task.data.task.version, action: settle };
    expect((await call("task.fence", fence, mine)).status).toBe(200);
    expect((await call("promise.get", { id: "test/job" }, theirs)).data.promise.state).toBe("resolved");
    await keys("--namespace", "prod/", "--out", join(dir, "other"));
    const stranger = await env("other", "edge.env");
    expect([await get("prod/job", stranger.RESONATE_TOKEN), await get("prod/job")]).toEqual([401, 401]);
  });
}
