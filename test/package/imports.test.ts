import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import config from "../../oxlint.config.ts";

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "imports-"));
});
afterAll(() => rm(root, { recursive: true, force: true }));

/** Lints files with the rules of this repository; returns one line per error. */
async function lint(files: Record<string, string>): Promise<string[]> {
  const folder = await mkdtemp(join(root, "files-"));
  await writeFile(join(folder, ".oxlintrc.json"), JSON.stringify(config));
  for (const [path, code] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), code);
  }
  const { stdout } = await execa(join(process.cwd(), "node_modules/.bin/oxlint"), ["--quiet", "-f", "unix"], {
    cwd: folder,
    reject: false,
  });
  return stdout.split("\n").filter((line) => line.includes("[Error/"));
}

const value = "export const a = 1;\n";

test.each([
  ["a layer that imports one below it", "core/jobs/a.ts", "../resonate/b.ts", 0],
  ["a layer that imports one above it", "core/resonate/a.ts", "../jobs/b.ts", 1],
  ["a layer of core that imports a feature", "core/jobs/a.ts", "../../features/quota/b.ts", 1],
  ["a composition that imports a feature", "functions/a.ts", "../features/quota/b.ts", 0],
  ["a caller's object that imports a feature", "functions/objects/a.ts", "../../features/quota/b.ts", 1],
  [
    "the composition of objects that imports a feature",
    "functions/objects/composition.ts",
    "../../features/quota/b.ts",
    0,
  ],
  ["a feature that imports a caller's object", "features/quota/a.ts", "../../functions/objects/b.ts", 1],
  ["a feature that imports another one", "features/quota/a.ts", "../events/b.ts", 1],
  ["tool calls that import a feature", "functions/calls/a.ts", "../../features/quota/b.ts", 1],
  ["a room that imports a room above it", "core/jobs/a.ts", "../../worker/b.ts", 1],
  ["the edge that imports a tool", "functions/mcp/a.ts", "../../tools/b.ts", 1],
  ["a tool that imports more than the public API", "tools/timer/a.ts", "../../core/jobs/b.ts", 1],
  ["the command line that imports a program of lab/", "cli/launcher/a.ts", "../../lab/b.ts", 1],
  ["a test that imports a tool", "test/e2e/a.test.ts", "../../tools/b.ts", 0],
  ["a test that imports a program of lab/", "test/e2e/a.test.ts", "../../lab/b.ts", 1],
  ["a test beside the code that imports a program of lab/", "core/jobs/a.test.ts", "../../lab/b.ts", 1],
  ["a program of lab/ that imports what tests use", "lab/load/a.ts", "../../test/support/b.ts", 0],
  ["a test of lab/ that imports its program", "lab/load/a.test.ts", "./b.ts", 0],
])("%s: %s imports %s", async (_what, file, path, errors) => {
  const imported = join(dirname(file), path);
  expect(await lint({ [imported]: value, [file]: `export { a } from "${path}";\n` })).toHaveLength(errors);
});

test("refuses a circular import, even of types only", async () => {
  const found = await lint({
    "core/jobs/a.ts": 'import type { B } from "./b.ts";\nexport interface A {\n  b: B;\n}\n',
    "core/jobs/b.ts": 'import type { A } from "./a.ts";\nexport interface B {\n  a: A;\n}\n',
  });
  expect(found).toEqual([expect.stringContaining("Dependency cycle"), expect.stringContaining("Dependency cycle")]);
});
