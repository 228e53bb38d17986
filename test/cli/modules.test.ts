// The modules that a project's Worker loads on demand.

import { mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { buildModules } from "../../cli/build/modules.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "modules-"));
  await mkdir(join(root, "edge/modules"), { recursive: true });
  await symlink(resolve("node_modules"), join(root, "node_modules"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const write = (path: string, text: string) => writeFile(join(root, path), text);
const modulePath = (name: string) => join(root, "edge/modules", name);

test("a module is built beside its source, bundled with its imports, and rebuilt only when one of these changes", async () => {
  await write("words.ts", 'export const word: string = "first";\n');
  await write("edge/modules/greeting.ts", 'export { word } from "../../words.ts";\n');
  expect(await buildModules(root)).toEqual(["edge/modules/greeting.ts", "words.ts"].map((path) => join(root, path)));
  expect((await import(modulePath("greeting.js"))).word).toBe("first");
  const { mtimeMs } = await stat(modulePath("greeting.js"));
  await buildModules(root);
  expect((await stat(modulePath("greeting.js"))).mtimeMs).toBe(mtimeMs);
  await write("words.ts", 'export const word: string = "second";\n');
  await buildModules(root);
  expect(await readFile(modulePath("greeting.js"), "utf8")).toContain("second");
});

test("a module that imports from Node is built as well, and the error of one that does not compile says why", async () => {
  await write("edge/modules/files.ts", 'import { readFileSync } from "fs";\nexport const read = readFileSync;\n');
  await buildModules(root);
  expect(await readFile(modulePath("files.js"), "utf8")).toMatch(/from ?"fs"/);
  await write("edge/modules/files.ts", 'export { gone } from "./gone.ts";\n');
  await expect(buildModules(root)).rejects.toThrow('Could not resolve "./gone.ts"');
});
