import { glob, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
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
  ["a composition that imports a feature", "functions/composition.ts", "../features/quota/b.ts", 0],
  ["a file beside a composition that imports a feature", "functions/a.ts", "../features/quota/b.ts", 1],
  ["a page that imports a feature", "pages/jobs/a.ts", "../../features/quota/b.ts", 1],
  ["a command that imports a feature", "cli/operate/a.ts", "../../features/quota/b.ts", 1],
  ["a feature that imports a face of core", "features/quota/a.ts", "../../core/jobs/index.ts", 0],
  ["a feature that imports what is behind a face", "features/quota/a.ts", "../../core/jobs/b.ts", 1],
  ["a worker's part that imports what is behind a face", "worker/execution/a.ts", "../../core/engine/ids.ts", 1],
  ["a wrapped server that imports a face of the worker", "wrap/worker/a.ts", "../../worker/connection/index.ts", 0],
  ["a wrapped server that imports what is behind it", "wrap/worker/a.ts", "../../worker/connection/b.ts", 1],
  ["a command that imports what is behind a face", "cli/operate/a.ts", "../../core/resonate/connection/b.ts", 1],
  ["a test that imports what is behind a face", "features/quota/a.test.ts", "../../core/jobs/b.ts", 0],
  ["a feature that imports another feature", "features/quota/a.ts", "../events/b.ts", 1],
  ["a part of a feature that imports another feature", "features/quota/parts/a.ts", "../../events/b.ts", 1],
  ["a part of a feature that imports its feature", "features/quota/parts/a.ts", "../b.ts", 0],
  ["a feature that imports what is generic at the edge", "features/quota/a.ts", "../../functions/http/b.ts", 0],
  ["a feature that imports the edge's configuration", "features/quota/a.ts", "../../functions/b.ts", 1],
  ["a feature that imports the worker", "features/quota/a.ts", "../../worker/execution/b.ts", 1],
  ["a caller's object that imports a feature", "functions/objects/a.ts", "../../features/quota/b.ts", 1],
  [
    "the composition of objects that imports a feature",
    "functions/objects/composition.ts",
    "../../features/quota/b.ts",
    0,
  ],
  ["a feature that imports a caller's object", "features/quota/a.ts", "../../functions/objects/b.ts", 1],
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

const SOURCES = "{client,core,features,functions,pages,worker,wrap,tools,server,cli,testing,infra}/**/*.{ts,tsx}";
const NOT_SOURCES = /\.test\.tsx?$|^cli\/template\//;

/** The paths of the files that a file imports, types included. */
async function importsOf(file: string): Promise<string[]> {
  const lines = (await readFile(file, "utf8")).split("\n").filter((line) => !/^\s*(\*|\/[/*])/.test(line));
  const paths = lines.join("\n").matchAll(/(?:\bfrom |\bimport\(?\s*)"(\.\.?\/[^"]+)"/g);
  return [...paths].map(([, path = ""]) => join(dirname(file), path));
}

/**
 * The folders that an import connects, or the file itself if it is in the root of a room: in one room, the two that are beside each
 * other; otherwise those below their rooms. Undefined within a folder, and between a folder and its parts.
 */
function connected(from: string, to: string): [string, string] | undefined {
  const [a, b] = [from.split("/"), to.split("/")];
  const common = a.findIndex((part, i) => part !== b[i]);
  if (common > 1 && Math.min(a.length, b.length) === common + 1) return undefined;
  const depth = Math.max(2, common + 1);
  return [a.slice(0, depth).join("/"), b.slice(0, depth).join("/")];
}

test.each([
  ["core/jobs/a.ts", "core/resonate/b.ts", ["core/jobs", "core/resonate"]],
  ["core/jobs/feed/a.ts", "core/resonate/b.ts", ["core/jobs", "core/resonate"]],
  ["functions/http/a.ts", "features/pages/b.ts", ["functions/http", "features/pages"]],
  ["functions/a.ts", "functions/http/b.ts", ["functions/a.ts", "functions/http"]],
  ["core/resonate/pacing/a.ts", "core/resonate/connection/b.ts", ["core/resonate/pacing", "core/resonate/connection"]],
  ["core/jobs/a.ts", "core/jobs/b.ts", undefined],
  ["core/jobs/feed/a.ts", "core/jobs/b.ts", undefined],
])("%s imports %s: connects %j", (from, to, folders) => {
  expect(connected(from, to)).toEqual(folders);
});

test("no two folders import each other", async () => {
  const examples = new Map<string, string>();
  for await (const file of glob(SOURCES)) {
    if (NOT_SOURCES.test(file)) continue;
    for (const imported of await importsOf(file)) {
      const folders = connected(file, imported);
      if (folders) examples.set(folders.join(" "), `${file} imports ${imported}`);
    }
  }
  expect(examples.size).toBeGreaterThan(100);
  const mutual = [...examples].flatMap(([folders, example]) => {
    const other = examples.get(folders.split(" ").reverse().join(" "));
    return other ? [`${example}, and ${other}`] : [];
  });
  expect(mutual).toEqual([]);
});
