import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { edgeStart } from "../../test/support/edge-start.ts";
import { type Bundle, bundleEdge } from "./bundle.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "bundle-"));
  await write("package.json", '{ "name": "mine", "type": "module" }');
  await write("wrangler.toml", 'main = ".build/edge/index.js"\nno_bundle = true\ncompatibility_date = "2026-11-17"\n');
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
}
const bundle = () => bundleEdge(undefined, root);
const load = async ({ dir, main }: Bundle) => (await import(pathToFileURL(join(dir, main)).href)).default;
const texts = ({ dir }: Bundle, names: readonly string[]) =>
  Promise.all(names.map((name) => readFile(join(dir, name), "utf8"))).then((all) => all.join("\n"));

test("what is imported on demand is no part of the start, and shares modules with it", async () => {
  await write("words.ts", "export const words: string[] = [];\n");
  await write(
    "edge/late.ts",
    'import { words } from "../words.ts";\nexport const add = () => words.push("a late word");\n',
  );
  await write("edge/other.ts", 'import { words } from "../words.ts";\nexport default () => words.push("another");\n');
  await write(
    "edge/index.ts",
    `import { words } from "../words.ts";
export default async () => {
  const { add } = await import("./late.ts");
  add();
  (await import("./other.ts")).default();
  return words;
};
`,
  );
  const made = await bundle();
  const start = await edgeStart(made);
  expect(start).toHaveLength(2);
  expect(await texts(made, start)).not.toContain("a late word");
  expect(await texts(made, made.modules)).toContain("a late word");
  expect(await (await load(made))()).toEqual(["a late word", "another"]);
});

test("it is made again if one of its sources changes", async () => {
  await write("words.ts", 'export const word: string = "first";\n');
  await write("edge/index.ts", 'export default async () => (await import("../words.ts")).word;\n');
  const made = await bundle();
  expect(await (await load(made))()).toBe("first");
  expect(await bundle()).toEqual(made);
  await write("words.ts", 'export const word: string = "second";\n');
  expect(await (await load(await bundle()))()).toBe("second");
});

test("minified code keeps the names of the author's functions and classes, and those of a library's errors", async () => {
  await write("node_modules/boiler/package.json", '{ "name": "boiler", "type": "module", "exports": "./index.js" }');
  await write("node_modules/boiler/index.js", "export class TooHot extends Error {}\n");
  await write(
    "edge/index.ts",
    `import { TooHot } from "boiler";
class NoWater extends Error {}
class Kettle {}
function boil() { throw new TooHot(new Error().stack); }
export default { made: [new TooHot(), new NoWater(), new Kettle()], boil };
`,
  );
  const { made, boil } = await load(await bundle());
  expect(made.map((each: object) => each.constructor.name)).toEqual(["TooHot", "NoWater", "Kettle"]);
  expect(boil).toThrow(/at boil /);
});

test("a definition of the wrangler configuration and an alias are replaced", async () => {
  await write(
    "edge/index.ts",
    'import { name } from "name";\ndeclare const GREETING: string;\nexport default GREETING + name;\n',
  );
  await write("edge/name.ts", 'export const name = "Ada";\n');
  const more = '\n[define]\nGREETING = \'"Hello, "\'\n[alias]\nname = "./edge/name.ts"\n';
  await write("wrangler.toml", (await readFile(join(root, "wrangler.toml"), "utf8")) + more);
  expect(await load(await bundle())).toBe("Hello, Ada");
});

test("it may import from Node, and the error of one that does not compile says why", async () => {
  await write("edge/index.ts", 'import { readFileSync } from "fs";\nexport default readFileSync;\n');
  const made = await bundle();
  expect(await texts(made, [made.main])).toMatch(/from ?"fs"/);
  await write("edge/index.ts", 'export { gone } from "./gone.ts";\n');
  await expect(bundle()).rejects.toThrow('Could not resolve "./gone.ts"');
  await rm(join(root, "edge/index.ts"));
  await expect(bundle()).rejects.toThrow("has no functions/index.ts and no edge/index.ts, which is the edge");
});
