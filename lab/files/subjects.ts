/** The deployments under test for files: the whole product with a folder or an S3 server, or one account with its bucket. */
import { randomBytes } from "node:crypto";
import { glob, mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { getPlatformProxy } from "wrangler";
import { startChild } from "../../cli/process/child.ts";
import { ResonateClient, Sealing } from "../../core/resonate/index.ts";
import { FileStorage } from "../../features/files/kept-files.ts";
import { locationOf } from "../../features/files/location.ts";
import type { ObjectStore } from "../../features/files/storage/objects.ts";
import { type Bucket, bucketStore } from "../../features/files/storage/r2.ts";
import { sweep } from "../../features/files/sweep.ts";
import { startStack } from "../../test/support/stack.ts";
import { freePort } from "../../testing/stack/port.ts";
import { type Program, until, watch } from "../../testing/stack/program.ts";
import { part, type StackPart } from "../../testing/stack/stack-part.ts";

export const PUBLIC_URL = "https://jobs.example";
const SHOWN = { VIEW_KEY: "v".repeat(32), PUBLIC_URL, ALLOWED_HOSTS: "127.0.0.1,localhost,jobs.example" };

export interface Subject extends AsyncDisposable {
  readonly origin: string;
  readonly parts: Readonly<Record<string, Pick<StackPart, "kill" | "start"> | undefined>>;
  /** The stored objects when all jobs have ended, before and after the sweep of leftovers of lost attempts. */
  left(): Promise<{ before: string[]; after: string[] }>;
}

/** `folder`: the folder for all of the deployment's data. */
export function startSubject(kind: string, folder: string): Promise<Subject> {
  if (kind === "r2") return startAccount(folder);
  return onStack(
    kind === "s3" ? () => startS3(folder) : async () => ({ at: { FILES_URL: join(folder, "kept") } }),
    folder,
  );
}

interface Served {
  at: { FILES_URL: string; FILES_KEY_ID?: string; FILES_SECRET?: string };
  s3?: StackPart;
}

async function onStack(serve: () => Promise<Served>, folder: string): Promise<Subject> {
  const { at, s3 } = await serve();
  const env = { ...at, ENCRYPTION_KEYS: randomBytes(32).toString("base64") };
  const programs = { edge: "test/files/fixture/files-edge.ts", worker: "test/files/fixture/files-worker.ts" };
  const stack = await startStack({
    programs,
    bindings: { ...env, ...SHOWN },
    workers: 2,
    own: { data: join(folder, "server") },
    env: { ...env, LEASE_SECONDS: "2" },
  });
  const [worker, other] = stack.workers;
  const { server, edge, origin, resonate } = stack;
  const files = new FileStorage(locationOf(env) as never);
  const client = new ResonateClient({
    url: resonate.url,
    token: resonate.env.RESONATE_TOKEN,
    codec: new Sealing(env.ENCRYPTION_KEYS),
  });
  const keys = () => keysOf(files.location.objects);
  return {
    origin,
    parts: { worker, other, server, edge, ...(s3 && { s3 }) },
    async left() {
      const before = await keys();
      await sweep(files, client, -1_000);
      return { before, after: await keys() };
    },
    async [Symbol.asyncDispose]() {
      await stack[Symbol.asyncDispose]();
      await s3?.kill();
    },
  };
}

/** The S3 server versitygw, a Go module, whose binary `VERSITYGW` names. */
async function startS3(folder: string): Promise<Served> {
  const { VERSITYGW = "versitygw" } = process.env;
  const port = await freePort();
  const root = join(folder, "s3");
  await mkdir(join(root, "files"), { recursive: true });
  const [key, secret] = ["chaos", randomBytes(16).toString("hex")];
  const args = ["--port", `127.0.0.1:${port}`, "--access", key, "--secret", secret, "--region", "auto", "--quiet"];
  const launch = async () => {
    const program = watch(startChild(VERSITYGW, [...args, "posix", root], { env: process.env, grace: 1_000 }));
    await isServed(`http://127.0.0.1:${port}/`, program);
    return program;
  };
  const at = { FILES_URL: `http://127.0.0.1:${port}/files/jobs`, FILES_KEY_ID: key, FILES_SECRET: secret };
  return { at, s3: part(await launch(), launch) };
}

/** Waits until an address answers; a refusal counts as an answer. */
async function isServed(url: string, program: Program): Promise<void> {
  let ended = false;
  void program.exited.then(() => {
    ended = true;
  });
  await until(`an answer at ${url}`, () => {
    if (ended) throw new Error(`it ended:\n${program.output()}`);
    return fetch(url).then(
      (response) => response.arrayBuffer().then(() => true),
      () => false,
    );
  });
}

/** An account whose jobs run inside its Workers: edge, Resonate server, runner and bucket are one process. */
async function startAccount(folder: string): Promise<Subject> {
  const port = await freePort();
  const config = resolve("test/files/fixture/account.toml");
  const vars = {
    ...SHOWN,
    ENCRYPTION_KEYS: randomBytes(32).toString("base64"),
    TASK_KEY: randomBytes(32).toString("hex"),
    AUTH_MODE: "none",
    RATE_LIMIT: "0",
    WAIT_SECONDS: "20",
  };
  const args = ["dev", "-c", config, "--port", String(port), "--ip", "127.0.0.1", "--persist-to", folder];
  const given = Object.entries(vars).flatMap(([name, value]) => ["--var", `${name}:${value}`]);
  const origin = `http://127.0.0.1:${port}`;
  const launch = async () => {
    const wrangler = [resolve("node_modules/wrangler/bin/wrangler.js"), ...args, ...given];
    const program = watch(startChild(process.execPath, wrangler, { env: { ...process.env, CI: "1" }, grace: 1_000 }));
    let isOver = false;
    void program.exited.then(() => {
      isOver = true;
    });
    const whole: Program = {
      ...program,
      // The process group contains wrangler and its child workerd.
      signal(signal) {
        if (!isOver) process.kill(-program.pid, signal);
      },
    };
    await isServed(`${origin}/health`, whole);
    return whole;
  };
  const account = part(await launch(), launch);
  return {
    origin,
    parts: { account },
    async left() {
      await account.kill();
      const persist = { path: join(folder, "v3") };
      const proxy = await getPlatformProxy<{ FILES: Bucket }>({ configPath: config, persist });
      const keys = await keysOf(bucketStore(proxy.env.FILES));
      await proxy.dispose();
      const open: string[] = [];
      for await (const path of glob(join(folder, "v3/r2/**/*.sqlite"))) open.push(...unfinishedIn(path));
      return { before: [...keys, ...open], after: keys };
    },
    async [Symbol.asyncDispose]() {
      await account.kill();
    },
  };
}

async function keysOf(objects: ObjectStore): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of objects.list("")) keys.push(key);
  return keys;
}

/** The uploads that were never completed, which R2 removes after seven days. The binding does not list them. */
function unfinishedIn(path: string): string[] {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const rows = database.prepare("SELECT key, upload_id FROM _mf_multipart_uploads WHERE state = 0").all();
    return rows.map(({ key, upload_id }) => `${key}?uploadId=${upload_id}`);
  } catch {
    return []; // It is not the database of a bucket.
  } finally {
    database.close();
  }
}
