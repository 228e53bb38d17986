import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import manifest from "./package.json" with { type: "json" };

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "lab-"));
  for (const file of ["start.ts", "package.json"]) await cp(join(import.meta.dirname, file), join(folder, file));
  await writeFile(join(folder, "program.ts"), "console.log(JSON.stringify(process.argv.slice(1)));\n");
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const start = (...args: string[]) =>
  execa(process.execPath, [join(folder, "start.ts"), "program.ts", ...args], { reject: false });

test("without the dependencies of lab/, it says how to install them", async () => {
  const { exitCode, stdout, stderr } = await start();
  expect([exitCode, stdout]).toEqual([1, ""]);
  expect(stderr).toContain("npm ci --prefix lab");
});

test("with them, the program runs as if it was started itself", async () => {
  for (const name of Object.keys(manifest.dependencies)) {
    await mkdir(join(folder, "node_modules", name), { recursive: true });
  }
  const { exitCode, stdout } = await start("--short", "a b");
  expect(exitCode).toBe(0);
  expect(JSON.parse(stdout)).toEqual([join(folder, "program.ts"), "--short", "a b"]);
});
