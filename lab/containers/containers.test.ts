/** Runs `npm run containers` without Docker; with Docker it would take minutes. */
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";

const PROGRAM = join(import.meta.dirname, "containers.ts");

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "no-docker-"));
});
afterAll(() => rm(dir, { recursive: true }));

const containers = async () => {
  const options = { env: { PATH: dir }, extendEnv: false, reject: false } as const;
  const { exitCode, stdout, stderr } = await execa(process.execPath, [PROGRAM], options);
  return { exitCode, stdout, stderr };
};
const program = async (script: string) => {
  await writeFile(join(dir, "docker"), `#!/bin/sh\n${script}\n`);
  await chmod(join(dir, "docker"), 0o755);
};

test("it names the reason and ends with 2 if `docker` is missing, if no Docker answers, or if Compose is too old", async () => {
  const says = (reason: string) => ({ exitCode: 2, stdout: "", stderr: `Nothing was checked: ${reason}.` });
  expect(await containers()).toEqual(says("there is no program `docker` on the PATH"));
  await program("echo 'Cannot connect to the Docker daemon' >&2; exit 1");
  expect(await containers()).toEqual(says("no Docker answers: Cannot connect to the Docker daemon"));
  await program("case $1 in compose) exit 1;; esac");
  expect(await containers()).toEqual(says("this Docker has no Compose (`docker compose`)"));
  await program("echo v2.23.3");
  expect(await containers()).toEqual(says("its Compose is v2.23.3, and it takes 2.24 or newer"));
});
