/**
 * Jobs whose files are in a bucket: R2 in an account whose jobs run inside its Workers, and S3 if `S3_URL`, `S3_KEY_ID` and
 * `S3_SECRET` are set.
 */
import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { createTestHarness } from "wrangler";
import { folderOf } from "../../features/files/kept-files.ts";
import type { Bucket } from "../../features/files/storage/r2.ts";
import { s3Of } from "../../features/files/storage/s3.ts";
import { until } from "../../testing/stack/program.ts";
import { callerAt } from "../auth/support.ts";
import { rpc } from "../support/rpc.ts";
import { startStack } from "../support/stack.ts";
import { hashOf, madeOf } from "./fixture/runs.ts";

const { S3_URL = "", S3_KEY_ID = "", S3_SECRET = "" } = process.env;
const PUBLIC_URL = "https://jobs.example";
const SHOWN = { VIEW_KEY: "v".repeat(32), PUBLIC_URL, ALLOWED_HOSTS: "127.0.0.1,localhost,jobs.example" };
const SIZE = 20_000_000; // four parts

/** A job makes a file, reads it and is forgotten. `kept` lists the keys in the bucket. */
async function comesAndGoes(origin: string, kept: () => Promise<string[]>): Promise<void> {
  const before = await kept();
  const params = { name: "make_file", arguments: { name: "in a bucket", size: SIZE } };
  const { result } = await rpc(`${origin}/mcp`, "tools/call", params, { capabilities: {} });
  const sha256 = await hashOf(madeOf("in a bucket", SIZE));
  expect(result.structuredContent.result).toMatchObject({ read: sha256, file: { sha256, size: SIZE } });
  const [address = ""] = /https:[^\s"]+\/files\/[^\s"]+/.exec(JSON.stringify(result.content)) ?? [];
  const download = (headers = {}) => fetch(address.replace(PUBLIC_URL, origin), { headers });
  const whole = Buffer.from(await (await download()).arrayBuffer());
  expect(await hashOf([whole])).toBe(sha256);
  const part = await download({ range: "bytes=5242870-5242970" }); // across the first two parts
  expect(Buffer.from(await part.arrayBuffer())).toEqual(whole.subarray(5_242_870, 5_242_971));
  // Only the file and its description are left, without the draft.
  expect((await kept()).length - before.length).toBe(2);
  const { forgotten } = await callerAt(`${origin}/mcp`, "").call("forget_jobs", {
    job_names: ["make_file_in a bucket"],
  });
  // A server that cannot remove jobs keeps the job and its files.
  if (forgotten.length > 0) expect(await kept()).toEqual(before);
}

/** Starts an account whose jobs run inside its Workers, with its bucket. */
async function startAccount(more: Record<string, string> = {}) {
  const env = { ...SHOWN, ENCRYPTION_KEYS: randomBytes(32).toString("base64") };
  const vars = { ...env, AUTH_MODE: "none", RATE_LIMIT: "0", WAIT_SECONDS: "45", ...more };
  const server = createTestHarness({ workers: [{ configPath: "./test/files/fixture/account.toml", vars }] });
  const { origin } = (await server.listen()).url;
  const { FILES } = await server.getWorker<{ FILES: Bucket }>().getEnv();
  const kept = async () => (await FILES.list({ prefix: "" })).objects.map(({ key }) => key);
  return { origin, FILES, kept, [Symbol.asyncDispose]: () => server.close() };
}

test("R2: a file of several parts is stored by its job and removed with it", async () => {
  await using account = await startAccount();
  await comesAndGoes(account.origin, account.kept);
}, 240_000);

test("R2: files are removed with their job by retention, without a worker; files of running jobs and foreign files stay", async () => {
  await using account = await startAccount({ RETENTION_DAYS: String(4 / 86_400), WAIT_SECONDS: "1" });
  const { origin, FILES, kept } = account;
  const stranger = `${"a".repeat(40)}/${"b".repeat(16)}-1.1.1`;
  const strangers = ["notes/old.txt", stranger, `${stranger}.json`];
  for (const key of strangers) await FILES.put(key, Buffer.from('{"data":"sealed:with another key"}'));
  const call = (name: string, args: object) =>
    rpc(`${origin}/mcp`, "tools/call", { name, arguments: args }, { capabilities: {} });
  const of = async (id: string) => {
    const folder = await folderOf(id);
    return (await kept()).filter((key) => key.startsWith(folder));
  };
  await call("make_file", { name: "running", size: 100, more: 1_000 });
  const texts = Array.from({ length: 20 }, (_, n) => `text ${n}`);
  await call("make_many", { name: "short", texts }); // more files than one alarm checks
  await until("all files to be stored", async () => (await of("make_many_short")).length === 2 * texts.length, 60_000);
  const running = await of("make_file_running");
  expect(running.length).toBeGreaterThan(0);
  await until("the files to be gone", async () => (await of("make_many_short")).length === 0, 60_000);
  const { result } = await call("probe_status", { job_names: ["make_many_short", "make_file_running"] });
  expect(result.structuredContent.statuses.map(({ status }: { status: string }) => status)).toEqual([
    "not_found",
    "running",
  ]);
  expect(await kept()).toEqual(expect.arrayContaining([...running, ...strangers]));
}, 240_000);

test.skipIf(S3_URL === "")(
  "S3: a file of several parts is stored by its job and removed with it",
  async () => {
    const at = { FILES_URL: `${S3_URL}/files-test/jobs`, FILES_KEY_ID: S3_KEY_ID, FILES_SECRET: S3_SECRET };
    const env = { ...at, ENCRYPTION_KEYS: randomBytes(32).toString("base64") };
    const programs = { edge: "test/files/fixture/files-edge.ts", worker: "test/files/fixture/files-worker.ts" };
    await using stack = await startStack({ programs, env, bindings: { ...env, ...SHOWN } });
    await comesAndGoes(stack.origin, async () => {
      const keys: string[] = [];
      for await (const { key } of s3Of(at).list("")) keys.push(key);
      return keys;
    });
  },
  240_000,
);
