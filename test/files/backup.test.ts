/** A machine with jobs' files is backed up and lost, and restored on another one. */
import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { beforeEach, expect, test } from "vitest";
import { rpc } from "../support/rpc.ts";
import { startStack } from "../support/stack.ts";
import { hashOf, madeOf } from "./fixture/runs.ts";

const PUBLIC_URL = "https://jobs.example";
const SIZE = 6_000_000;
const programs = { edge: "test/files/fixture/files-edge.ts", worker: "test/files/fixture/files-worker.ts" };

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "backup-"));
  return () => rm(dir, { recursive: true, force: true });
});

/** Starts a machine whose state is in the folder `data`. */
async function startMachine(data: string, files: Record<string, string>) {
  const env = { ...files, RESONATE_NAMESPACE: "", RESONATE_GROUP: "machine" };
  const shown = { VIEW_KEY: "v".repeat(32), PUBLIC_URL, ALLOWED_HOSTS: "127.0.0.1,jobs.example" };
  const folders = { own: { data }, apart: true, objects: join(data, "objects") };
  const stack = await startStack({ ...folders, programs, env, bindings: { ...env, ...shown } });
  const call = async (name: string, args: object) => {
    const { result } = await rpc(stack.url, "tools/call", { name, arguments: args }, { capabilities: {} });
    const [address = ""] = /https:[^\s"]+\/files\/[^\s"]+/.exec(JSON.stringify(result.content)) ?? [];
    return { content: result.structuredContent, address: address.replace(PUBLIC_URL, stack.origin) };
  };
  return Object.assign(call, { [Symbol.asyncDispose]: () => stack[Symbol.asyncDispose]() });
}

async function command(...args: string[]): Promise<string> {
  const { exitCode, all } = await execa(process.execPath, ["cli/main.ts", ...args], { all: true, reject: false });
  expect([exitCode, all]).toEqual([0, expect.any(String)]);
  return all;
}

test.each([
  {
    where: "the data directory, encrypted",
    isInside: true,
    keys: { ENCRYPTION_KEYS: randomBytes(32).toString("base64") },
  },
  { where: "a separate folder", isInside: false, keys: {} },
])("a restored job's file is complete if it was in $where", async ({ isInside, keys }) => {
  const [first, second, backup] = ["first", "second", "backup.ndjson"].map((name) => join(dir, name)) as [
    string,
    ...string[],
  ];
  const filesOf = (data: string) => ({ ...keys, FILES_URL: join(isInside ? data : dir, "files") });
  const sha256 = await hashOf(madeOf("kept", SIZE));
  {
    await using machine = await startMachine(first, filesOf(first));
    const { content } = await machine("make_file", { name: "kept", size: SIZE });
    expect(content.result.file).toMatchObject({ sha256, size: SIZE });
  }
  const said = await command("backup", "--data", first, "--out", String(backup));
  expect(said).toContain(isInside ? `Files of jobs are in ${backup}.files` : "Files of jobs are not in it");
  if (isInside) expect((await stat(`${backup}.files`)).mode & 0o077).toBe(0);
  expect((await readdir(dir)).includes("backup.ndjson.files")).toBe(isInside);
  await rm(first, { recursive: true });

  await command("restore", "--from", String(backup), "--data", String(second));
  await using machine = await startMachine(String(second), filesOf(String(second)));
  const { content, address } = await machine("await_result", { job_names: ["make_file_kept"] });
  const { file } = content.results.make_file_kept;
  expect(await hashOf((await fetch(address)).body as AsyncIterable<Uint8Array>)).toBe(sha256);
  expect((await machine("take_file", { name: "again", file: file.uri })).content.result).toBe(sha256);
});
